// A server's part in moving shards: who owns what, the rows that go and come
// (docs/design/partition.md tells the whole course).
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "base/log.h"
#include "ps/checkpoint/restore_point.h"
#include "ps/server/server_core.h"
#include "ps/server/shard_mover.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

// For others that are away, too: they may be starting likewise.
constexpr Duration kLearnWithin = std::chrono::milliseconds(500);
constexpr size_t kEntryBytes = 256u << 10;
// So few changed rows that the shard may stand still while they are sent.
constexpr size_t kFewBytes = 256u << 10;

}  // namespace

ShardMap ServerCore::shards() {
  std::lock_guard lock(map_mu_);
  return published_;
}

Status ServerCore::MergeShards(const ShardMap& other) {
  Lane::Guard guard(*lanes_[0]);
  return MergeUnderFirst(other);
}

Status ServerCore::MergeUnderFirst(ShardMap other) {
  {
    std::lock_guard lock(map_mu_);
    const bool news = published_.Merge(other);
    if (!map_.Merge(other) && !news) return Status::Ok();
  }
  // As it is under the lane's lock: a shard that departs meanwhile would come back without it.
  const auto now = [this] {
    std::lock_guard lock(map_mu_);
    return map_;
  };
  AdoptShards(lanes_[0].get(), now());
  for (uint32_t lane = 1; lane < lanes(); ++lane) {
    Lane::Guard guard(*lanes_[lane], lanes_[0]->to_flush());
    AdoptShards(lanes_[lane].get(), now());
  }
  NotifyClients();
  return Status::Ok();
}

// A server that was started again may have fewer lanes than when it got a shard.
void ServerCore::AdoptShards(Lane* lane, const ShardMap& map) {
  ShardMap folded = map;
  uint32_t index = 0;
  while (lanes_[index].get() != lane) ++index;
  for (uint32_t shard = 0; shard < map.shards(); ++shard) {
    ShardAssignment place = map.At(shard);
    if (place.owner.server != options_.index) continue;
    place.owner.lane = static_cast<uint16_t>(place.owner.lane % lanes());
    folded.Set(shard, place);
  }
  if (lane->Adopt(folded)) ++owned_version_;
  if (!lane->log.on()) return;
  lane->Log(BeginEntry(EntryKind::kShards, -1, 0) + EncodeShards(map));
}

void ServerCore::LogShards(uint32_t lane_index) {
  Lane& lane = *lanes_[lane_index];
  {
    std::lock_guard lock(map_mu_);
    if (map_.version() == 1 && lane.arriving().empty()) return;
    lane.Log(BeginEntry(EntryKind::kShards, -1, 0) + EncodeShards(map_));
  }
  for (const auto& [shard, arrival] : lane.arriving()) {
    std::string entry = BeginEntry(EntryKind::kArriving, -1, arrival.move);
    ByteWriter writer(&entry);
    writer.Put(shard);
    writer.Put(arrival.epoch);
    lane.Log(std::move(entry));
  }
}

// Under the first lane's lock. Who does not hear of it hears it with his next request.
void ServerCore::NotifyClients() {
  FrameHeader head;
  head.type = FrameType::kShardsMoved;
  for (const auto& [id, session] : lanes_[0]->sessions()) {
    auto peer = session.peer.lock();
    if (peer == nullptr) continue;
    peer->Reply(head, {});
    lanes_[0]->QueueFlush(std::move(peer));
  }
}

void ServerCore::PublishShards() {
  Lane::Guard guard(*lanes_[0]);
  {
    std::lock_guard lock(map_mu_);
    published_.Merge(map_);
  }
  NotifyClients();
}

std::shared_ptr<ShardMover> ServerCore::mover() {
  std::lock_guard lock(mover_mu_);
  if (mover_ == nullptr && !stopped_) mover_ = std::make_shared<ShardMover>(this);
  return mover_;
}

Status ServerCore::RecoverShardMap() {
  if (options_.replicas > 1 || options_.members == nullptr || options_.incarnation < 1)
    return Status::Ok();
  ShardDialer dialer(options_);
  TRY_ASSIGN(const ShardMap map, LearnShards(&dialer, partition_.shards(), kLearnWithin));
  return MergeShards(map);
}

void ServerCore::AnnounceShards() {
  if (options_.members == nullptr) return;  // then there was nobody to give a shard to
  {
    std::lock_guard lock(map_mu_);
    published_.Merge(map_);
    if (map_.version() == 1) return;
  }
  if (const auto moves = mover()) moves->Announce();
}

// --- What is asked of it ---

Status ServerCore::HandleShards(Request* request) {
  if (!request->body.empty()) {
    ShardMap theirs;
    TRY(DecodeShards(request->body, partition_.shards(), &theirs));
    TRY(MergeUnderFirst(std::move(theirs)));
  }
  request->answer(Status::Ok(), EncodeShards(shards()));
  return Status::Ok();
}

Status ServerCore::ShardBytes(Request* request) {
  const Lane& lane = *lanes_[request->from.lane];
  std::string reply;
  ByteWriter writer(&reply);
  writer.Put((leaving_ ? kShardsLeave : 0) | (drained_ ? kShardsDrained : 0));
  writer.Put(uint64_t{request->from.lane == 0 ? blobs_.bytes() : 0});
  for (uint32_t shard = 0; shard < partition_.shards(); ++shard) {
    if (lane.state(shard) != ShardState::kHere && lane.state(shard) != ShardState::kLeaving)
      continue;
    writer.Put(shard);
    writer.Put(lane.ShardBytes(shard));
  }
  request->answer(Status::Ok(), reply);
  return Status::Ok();
}

Status ServerCore::MoveShard(Request* request) {
  MoveRequest order;
  ByteReader reader(request->body);
  TRY(reader.Get(&order.shard));
  TRY(reader.Get(&order.to.server));
  TRY(reader.Get(&order.to.lane));
  if (order.shard >= partition_.shards()) {
    return InvalidArgument(
        fmt::format("shard {}: there are {} shards", order.shard, partition_.shards()));
  }
  if (options_.members == nullptr) {
    return FailedPrecondition("this server cannot move shards: it was started without Members");
  }
  const auto moves = mover();
  if (moves == nullptr) return Unavailable(fmt::format("server {} stopped", options_.index));
  moves->Enqueue(order, std::move(request->answer));
  return Status::Ok();
}

// --- The owner's end ---

Status ServerCore::BeginDeparture(uint32_t shard, uint32_t* lane, ShardAssignment* place) {
  {
    std::lock_guard lock(map_mu_);
    *place = map_.At(shard);
  }
  if (place->owner.server != options_.index) {
    return FailedPrecondition(
        fmt::format("it is at server {}, not at server {}", place->owner.server, options_.index));
  }
  *lane = place->owner.lane % lanes();
  Lane::Guard guard(*lanes_[*lane]);
  if (stopped_ || role_ != Role::kPrimary) return Unavailable("the server does not serve it now");
  return lanes_[*lane]->BeginDeparture(shard);
}

void ServerCore::EndDeparture(uint32_t lane) {
  Lane::Guard guard(*lanes_[lane]);
  lanes_[lane]->EndDeparture();
}

std::vector<std::string> ServerCore::SpecsOf(uint32_t lane, std::set<uint32_t>* sent) {
  Lane::Guard guard(*lanes_[lane]);
  std::vector<std::string> specs;
  for (const auto& [id, table] : lanes_[lane]->tables()) {
    if (sent->insert(id).second) EncodeSpec(table->spec(), &specs.emplace_back());
  }
  return specs;
}

std::string ServerCore::CopyShard(uint32_t lane_index, RowCursor* cursor) {
  Lane& lane = *lanes_[lane_index];
  Lane::Guard guard(lane);
  std::vector<Key> keys;
  std::vector<float> rows;
  for (auto at = lane.tables().lower_bound(cursor->table); at != lane.tables().end(); ++at) {
    if (at->first != cursor->table) cursor->slot = 0;
    cursor->table = at->first;
    const size_t floats = at->second->saved_floats();
    const size_t step = std::max<size_t>(1, kEntryBytes / (floats * sizeof(float)));
    at->second->CopyRows(cursor->shard, cursor->slot, step, &keys, &rows);
    cursor->slot += keys.size();
    if (!keys.empty()) return CopyRowsEntry(at->first, floats, keys, rows);
  }
  return {};
}

std::vector<std::string> ServerCore::CopyDirty(uint32_t lane_index, bool freeze, bool* done) {
  Lane& lane = *lanes_[lane_index];
  Lane::Guard guard(lane);
  auto dirty = lane.TakeDirty();
  size_t bytes = 0;
  for (const auto& [id, keys] : dirty) {
    bytes += keys.size() * lane.FindTable(id)->saved_floats() * sizeof(float);
  }
  *done = !freeze ? bytes <= kFewBytes : lane.Freeze();
  std::vector<std::string> entries;
  std::vector<Key> keys;
  std::vector<float> rows;
  for (const auto& [id, wanted] : dirty) {
    const Table& table = *lane.FindTable(id);
    const size_t step = std::max<size_t>(1, kEntryBytes / (table.saved_floats() * sizeof(float)));
    for (size_t first = 0; first < wanted.size(); first += step) {
      const size_t n = std::min(step, wanted.size() - first);
      table.CopyKeys({wanted.data() + first, n}, &keys, &rows);
      entries.push_back(CopyRowsEntry(id, table.saved_floats(), keys, rows));
    }
  }
  return entries;
}

Result<ShardMap> ServerCore::Depart(uint32_t lane_index, uint32_t shard,
                                    const ShardAssignment& to) {
  Lane& lane = *lanes_[lane_index];
  Lane::Guard guard(lane);
  if (stopped_ || role_ != Role::kPrimary) return Unavailable("the server does not serve it now");
  if (lane.state(shard) != ShardState::kLeaving || !lane.MayDepart()) {
    return Aborted("a checkpoint began meanwhile: try again");
  }
  ShardMap decided;
  {
    std::lock_guard lock(map_mu_);
    map_.Set(shard, to);
    decided = map_;
  }
  AdoptShards(&lane, decided);
  departed_at_ = lane.log.end();
  return decided;
}

bool ServerCore::DepartureConfirmed(uint32_t lane_index) {
  Lane& lane = *lanes_[lane_index];
  Lane::Guard guard(lane);
  return !lane.log.paired() || (!lane.log.down() && lane.log.confirmed() >= departed_at_);
}

// --- One that leaves ---

void ServerCore::SetLeaving(bool last) {
  leaving_ = true;
  if (last) empty_ = true;
}

size_t ServerCore::owned_shards() {
  size_t owned = 0;
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    for (uint32_t shard = 0; shard < partition_.shards(); ++shard) {
      owned += lane->state(shard) != ShardState::kElsewhere;
    }
  }
  return owned;
}

std::map<uint32_t, Owner> ServerCore::Arrivals() {
  std::map<uint32_t, Owner> arrivals;
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    std::lock_guard lock(map_mu_);
    for (const auto& [shard, arrival] : lane->arriving()) arrivals[shard] = map_.At(shard).owner;
  }
  return arrivals;
}

void ServerCore::ForgetArrival(uint32_t shard) {
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    const auto arrival = lane->arriving().find(shard);
    if (arrival == lane->arriving().end()) continue;
    ShardAssignment place;
    {
      std::lock_guard lock(map_mu_);
      place = map_.At(shard);
    }
    const bool ours = place.owner.server == static_cast<uint32_t>(options_.index);
    if (!ours && place.epoch < arrival->second.epoch) lane->ForgetArrival(shard);
  }
}

size_t ServerCore::clients() {
  size_t there = 0;
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    for (const auto& [id, session] : lane->sessions()) {
      there += session.client >= 0 && !session.left && !session.peer.expired();
    }
  }
  return there;
}

bool ServerCore::AnnounceEmpty(TimePoint deadline) {
  {
    Lane::Guard guard(*lanes_[0]);
    lanes_[0]->Log(BeginEntry(EntryKind::kEmptied, -1, 0));
  }
  for (;;) {
    const LogState log = log_state(0);
    if (log.end == log.confirmed) return true;
    if (RealClock::Get()->Now() >= deadline || WaitForStop(std::chrono::milliseconds(1)))
      return false;
  }
}

// --- The next owner's end ---

Status ServerCore::HandleMoveFrame(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                                   const FrameHeader& head, std::string_view body) {
  Lane& lane = *lanes_[from.lane];
  const Answer answer = AnswerTo(peer, head.id, &lane);
  Status status;
  if (head.type == FrameType::kShards && from.lane == 0) {
    Request request{from, nullptr, head, body, answer};
    status = HandleShards(&request);
    if (!status.ok()) answer(status, {});
    return Status::Ok();
  }
  if (head.type == FrameType::kRestorePoint && from.lane == 0) {
    const bool in_use = !lane.Describe().tables.empty();
    answer(Status::Ok(), EncodeRestorePoint({restored_, committed_, checkpoint_, in_use}));
    return Status::Ok();
  }
  if (from.kind != HelloKind::kMove) return InvalidArgument("a claim that asks for something else");
  try {
    status = ApplyMovedEntry(from, head, body);
  } catch (const std::bad_alloc&) {
    status = ResourceExhausted(fmt::format("server {} has no memory for a shard", options_.index));
  }
  answer(status, {});
  return Status::Ok();
}

Status ServerCore::ApplyMovedEntry(const Hello& from, const FrameHeader& head,
                                   std::string_view body) {
  Lane& lane = *lanes_[from.lane];
  if (stopped_ || role_ != Role::kPrimary) return Unavailable("the server serves nothing now");
  if (head.type == FrameType::kCreateTable) {
    TableSpec spec;
    ByteReader reader(body);
    TRY(DecodeSpec(&reader, &spec));
    TRY(lane.CreateTable(spec));
    Hello nobody;
    nobody.lane = from.lane;
    LogControl(nobody, head, body);
    return Status::Ok();
  }
  if (head.type != FrameType::kReplicate) return InvalidArgument("a frame that moves nothing");
  Entry entry;
  TRY(ReadEntry(body, &entry));
  if (entry.kind == EntryKind::kArriving) {
    if (leaving_) {
      return FailedPrecondition(fmt::format("server {} leaves: it takes no rows", options_.index));
    }
    entry.session = from.session;
    TRY(ApplyShardsEntry(from.lane, entry));
  } else if (entry.kind == EntryKind::kCopyRows) {
    TRY(TakeRows(from.lane, entry.content, from.session));
  } else {
    return InvalidArgument("an entry that moves nothing");
  }
  if (lane.log.on())
    lane.Log(BeginEntry(entry.kind, -1, entry.session) + std::string(entry.content));
  return Status::Ok();
}

// Also of a backup.
Status ServerCore::ApplyShardsEntry(uint32_t lane_index, const Entry& entry) {
  Lane& lane = *lanes_[lane_index];
  ByteReader reader(entry.content);
  if (entry.kind == EntryKind::kMoved) {
    uint64_t seq = 0;
    TRY(reader.Get(&seq));
    lane.RecordMoved(lane.ReplicatedSession(entry.session, entry.client), seq);
    return Status::Ok();
  }
  if (entry.kind == EntryKind::kShards) {
    ShardMap map;
    TRY(DecodeShards(entry.content, partition_.shards(), &map));
    {
      std::lock_guard lock(map_mu_);
      map_.Merge(map);
    }
    // What the primary's lane went by then, not what other lanes' logs have told since: a shard
    // would be here before its rows, which this lane's log has yet to bring.
    AdoptShards(&lane, map);
    return Status::Ok();
  }
  uint32_t shard = 0, epoch = 0;
  TRY(reader.Get(&shard));
  TRY(reader.Get(&epoch));
  if (shard >= partition_.shards()) return InvalidArgument("a shard that there is not arrives");
  return lane.Expect(shard, epoch, entry.session);
}

}  // namespace shoal::ps
