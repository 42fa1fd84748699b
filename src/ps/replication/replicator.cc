#include "ps/replication/replicator.h"

#include <algorithm>

#include "ps/checkpoint/checkpoint_service.h"
#include "ps/server/blob_service.h"
#include "ps/server/shard_service.h"
#include "ps/server/worker_service.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

// Rows of one entry, and how far a new backup may be behind before it gets no more of them.
constexpr size_t kCopyBytes = 256u << 10;
constexpr size_t kBehindBytes = 8u << 20;

}  // namespace

void Replicator::LogServerState() {
  Lane& lane = context_->first_lane();
  std::string entry = BeginEntry(EntryKind::kServer, -1, 0);
  ByteWriter writer(&entry);
  writer.Put(context_->instance.load());
  writer.Put(services_.checkpoints->restored());
  writer.Put(services_.checkpoints->last_id());
  services_.workers->SaveRegistry(&writer);
  lane.Log(std::move(entry));
  for (const auto& [worker, bytes] : services_.workers->progress()) {
    lane.Log(BeginEntry(EntryKind::kProgress, worker, 0) + bytes);
  }
  services_.blobs->LogAll(&lane);
}

void Replicator::LogSessions(Lane* lane) {
  for (const uint64_t session : lane->replaced()) {
    std::string entry = BeginEntry(EntryKind::kSession, -1, session);
    ByteWriter writer(&entry);
    writer.Put(uint64_t{0});
    for (const bool flag : {false, false, true}) writer.Put(static_cast<uint8_t>(flag));
    lane->Log(std::move(entry));
  }
  for (const auto& [id, session] : lane->sessions()) {
    std::string entry = BeginEntry(EntryKind::kSession, session.client, id);
    ByteWriter writer(&entry);
    writer.Put(session.last_seq);
    for (const bool flag : {session.left, session.dead, false}) {
      writer.Put(static_cast<uint8_t>(flag));
    }
    lane->Log(std::move(entry));
    for (const uint64_t seq : session.moved) {
      std::string moved = BeginEntry(EntryKind::kMoved, session.client, id);
      ByteWriter(&moved).Put(seq);
      lane->Log(std::move(moved));
    }
  }
}

void Replicator::Start(uint32_t lane_index, std::shared_ptr<ReplicaConnection> connection) {
  Lane& lane = context_->lane(lane_index);
  Lane::Guard guard(lane);
  lane.log.Open(std::move(connection));
  if (lane_index == 0) LogServerState();
  // Before its tables: which shards it has.
  services_.shards->LogState(lane_index);
  LogSessions(&lane);
  Hello no_client;
  no_client.lane = lane_index;
  FrameHeader head;
  head.type = FrameType::kCreateTable;
  for (const auto& [id, table] : lane.tables()) {
    std::string spec;
    EncodeSpec(table->spec(), &spec);
    LogControl(&lane, no_client, head, spec);
  }
}

void Replicator::Resume(uint32_t lane_index, std::shared_ptr<ReplicaConnection> connection,
                        uint64_t confirmed) {
  Lane& lane = context_->lane(lane_index);
  Lane::Guard guard(lane);
  lane.log.Resume(std::move(connection), confirmed);
  lane.QueueFlush(lane.log.connection());
  lane.SendReady();
}

// Rows are copied as they are at that moment, between entries: what came before is in them, what
// comes after is repeated upon them.
bool Replicator::CopySomeRows(uint32_t lane_index, RowCursor* cursor) {
  Lane& lane = context_->lane(lane_index);
  Lane::Guard guard(lane);
  if (lane.log.down() || lane.log.bytes() > kBehindBytes) return false;
  const auto at = lane.tables().lower_bound(cursor->table);
  if (at == lane.tables().end()) {
    cursor->done = true;
    return false;
  }
  if (at->first != cursor->table) *cursor = {at->first, 0, 0, false};
  const Table& table = *at->second;
  std::vector<Key> keys;
  std::vector<float> rows;
  const size_t step = std::max<size_t>(1, kCopyBytes / (table.saved_floats() * sizeof(float)));
  while (keys.empty() && cursor->shard < context_->partition.shards()) {
    table.CopyRows(cursor->shard, cursor->slot, step, &keys, &rows);
    cursor->slot += keys.size();
    if (keys.size() == step) continue;
    ++cursor->shard;
    cursor->slot = 0;
  }
  if (keys.empty()) {
    *cursor = {at->first + 1, 0, 0, at->first == UINT32_MAX};
    return !cursor->done;
  }
  lane.Log(CopyRowsEntry(at->first, table.saved_floats(), keys, rows));
  return true;
}

void Replicator::EnableSync(uint32_t lane_index) {
  Lane& lane = context_->lane(lane_index);
  Lane::Guard guard(lane);
  lane.log.Pair();
  lane.Log(BeginEntry(EntryKind::kPaired, -1, 0));
}

void Replicator::Ping() {
  for (auto& lane : context_->lanes) {
    Lane::Guard guard(*lane);
    if (lane->log.paired() && lane->log.confirmed() == lane->log.end()) {
      lane->Log(BeginEntry(EntryKind::kNothing, -1, 0));
    }
  }
}

void Replicator::Stop() {
  for (auto& lane : context_->lanes) {
    Lane::Guard guard(*lane);
    lane->log.Close();
    lane->SendReady();
  }
}

Replicator::LogState Replicator::log_state(uint32_t lane_index) {
  Lane& lane = context_->lane(lane_index);
  Lane::Guard guard(lane);
  return {lane.log.down(), lane.log.paired(), lane.log.end(), lane.log.confirmed()};
}

void Replicator::OnConfirmed(uint32_t lane_index, const ReplicaConnection* from,
                             uint64_t position) {
  Lane& lane = context_->lane(lane_index);
  Lane::Guard guard(lane);
  if (lane.log.connection().get() == from) lane.Confirm(position);
}

void Replicator::OnConnectionLost(uint32_t lane_index, const ReplicaConnection* connection) {
  Lane& lane = context_->lane(lane_index);
  std::shared_ptr<ReplicaConnection> last;  // goes after the lock
  Lane::Guard guard(lane);
  last = lane.log.connection();
  lane.log.Detach(connection);
}

bool Replicator::AnnounceEmpty(TimePoint deadline) {
  {
    Lane::Guard guard(context_->first_lane());
    context_->first_lane().Log(BeginEntry(EntryKind::kEmptied, -1, 0));
  }
  for (;;) {
    const LogState log = log_state(0);
    if (log.end == log.confirmed) return true;
    if (RealClock::Get()->Now() >= deadline ||
        context_->WaitForStop(std::chrono::milliseconds(1))) {
      return false;
    }
  }
}

}  // namespace shoal::ps
