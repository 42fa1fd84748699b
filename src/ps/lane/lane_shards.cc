// Shards that a lane gives away and gets while it serves (docs/design/partition.md).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "ps/lane/lane.h"

namespace shoal::ps {
namespace {

// As many requests of a session as can be unanswered; see Channel.
constexpr size_t kMovedRemembered = 1024;
constexpr int kMaxBlockedDepartures = 200;

}  // namespace

bool Lane::InTransit(const Table& table, const KeyBatch& batch) const {
  return std::any_of(batch.keys.begin(), batch.keys.begin() + static_cast<long>(batch.n),
                     [&](Key key) {
                       const uint32_t shard = partition_->ShardOf(table.spec().key_space, key);
                       return states_[shard] != ShardState::kHere;
                     });
}

// Nothing of it is applied, so that its sender can have all of it done elsewhere. One that was
// applied before the rows went is not to be applied there again.
Status Lane::RefuseMoved(Session* session, const FrameHeader& head, bool duplicate, Status why) {
  const auto& moved = session->moved;
  const bool refused = std::binary_search(moved.begin(), moved.end(), head.id);
  const bool applied = duplicate && Writes(head) && !refused;
  Count(head, true);
  if (applied && !WantsRows(head)) return Status::Ok();
  if (!duplicate && Writes(head)) RecordMoved(session, head.id);
  if (!duplicate && Writes(head) && log.on()) {
    std::string entry = BeginEntry(EntryKind::kMoved, session->client, session->id);
    ByteWriter(&entry).Put(head.id);
    Log(std::move(entry));
  }
  refusal_ = static_cast<uint8_t>(kRefusedMoved | (applied ? kRefusedApplied : 0));
  return why;
}

void Lane::RecordMoved(Session* session, uint64_t seq) {
  session->last_seq = std::max(session->last_seq, seq);
  session->moved.push_back(seq);
  while (session->moved.front() + kMovedRemembered < seq) session->moved.pop_front();
}

void Lane::RecordDirty(const Table& table, const FrameHeader& head, const RowRequest& request) {
  KeyBatch batch;
  for (size_t first = 0; first < head.rows; first += kBatchRows) {
    request.FillKeys(first, std::min<size_t>(kBatchRows, head.rows - first), &batch);
    for (size_t i = 0; i < batch.n; ++i) {
      if (partition_->ShardOf(table.spec().key_space, batch.keys[i]) != departure_->shard) continue;
      departure_->dirty[head.table].insert(batch.keys[i]);
    }
  }
}

void Lane::SetState(uint32_t shard, ShardState state) {
  const auto transit = [](ShardState s) {
    return s == ShardState::kArriving || s == ShardState::kLeaving ? 1 : 0;
  };
  in_transit_ += transit(state) - transit(states_[shard]);
  states_[shard] = state;
}

void Lane::Drop(uint32_t shard) {
  for (auto& [id, table] : tables_) table->DropShard(shard);
  arriving_.erase(shard);
  SetState(shard, ShardState::kElsewhere);
}

bool Lane::ApplyShardMap(const ShardMap& map) {
  bool some = false;
  for (uint32_t shard = 0; shard < states_.size(); ++shard) {
    const ShardAssignment& place = map.At(shard);
    const ShardState state = states_[shard];
    if (state == ShardState::kArriving && place.epoch < arriving_.at(shard).epoch) continue;
    const bool mine = place.owner == self_;
    if (mine ? state == ShardState::kHere || state == ShardState::kLeaving
             : state == ShardState::kElsewhere) {
      continue;
    }
    some = true;
    if (!mine) {
      // Only a server that was thought dead is told so of what it serves.
      if (state != ShardState::kArriving) EndCheckpoint(-1, Aborted("rows moved meanwhile"));
      Drop(shard);
      continue;
    }
    if (state == ShardState::kElsewhere) {
      for (auto& [id, table] : tables_) table->AddShard(shard);
    }
    arriving_.erase(shard);
    SetState(shard, ShardState::kHere);
    // Pushes that were sent to the shard before the markers may arrive only now.
    if (snapshot_.id >= 0 && !snapshot_.frozen) snapshot_.torn = true;
  }
  return some;
}

Status Lane::BeginDeparture(uint32_t shard) {
  if (departure_.has_value()) return FailedPrecondition("another shard is leaving this lane");
  if (states_[shard] != ShardState::kHere) {
    return FailedPrecondition(fmt::format("shard {} is not here", shard));
  }
  departure_ = Departure{shard, {}};
  return Status::Ok();
}

std::map<uint32_t, std::vector<Key>> Lane::TakeDirty() {
  std::map<uint32_t, std::vector<Key>> dirty;
  for (const auto& [table, keys] : departure_->dirty) {
    dirty[table].assign(keys.begin(), keys.end());
  }
  departure_->dirty.clear();
  return dirty;
}

size_t Lane::dirty_rows() const {
  size_t rows = 0;
  for (const auto& [table, keys] : departure_->dirty) rows += keys.size();
  return rows;
}

bool Lane::Freeze() {
  if (snapshot_.id >= 0 && !snapshot_.begun &&
      ++snapshot_.blocked_departures > kMaxBlockedDepartures) {
    no_cut_below_ = std::max(no_cut_below_, snapshot_.id + 1);
    EndCheckpoint(-1, Aborted("the checkpoint was not begun here"));
  }
  if (snapshot_.id >= 0) return false;
  SetState(departure_->shard, ShardState::kLeaving);
  return true;
}

void Lane::Unfreeze() {
  if (departure_.has_value() && states_[departure_->shard] == ShardState::kLeaving) {
    SetState(departure_->shard, ShardState::kHere);
  }
}

void Lane::EndDeparture() {
  Unfreeze();
  departure_.reset();
}

Status Lane::PrepareArrival(uint32_t shard, uint32_t epoch, uint64_t move) {
  if (states_[shard] == ShardState::kHere || states_[shard] == ShardState::kLeaving) {
    return FailedPrecondition(fmt::format("shard {} is here already", shard));
  }
  Drop(shard);
  SetState(shard, ShardState::kArriving);
  arriving_[shard] = {epoch, move};
  for (auto& [id, table] : tables_) table->AddShard(shard);
  return Status::Ok();
}

uint64_t Lane::ShardBytes(uint32_t shard) const {
  uint64_t bytes = 0;
  for (const auto& [id, table] : tables_) bytes += table->ShardBytes(shard);
  return bytes;
}

Status Lane::ApplyCopiedRows(std::string_view content, uint64_t move) {
  uint32_t id = 0, floats = 0, count = 0, zero = 0;
  ByteReader reader(content);
  TRY(reader.Get(&id));
  TRY(reader.Get(&floats));
  TRY(reader.Get(&count));
  TRY(reader.Get(&zero));
  Table* table = FindTable(id);
  if (table == nullptr || table->saved_floats() != floats ||
      reader.remaining() != uint64_t{count} * (sizeof(Key) + uint64_t{floats} * sizeof(float))) {
    return InvalidArgument("copied rows do not match their table");
  }
  std::vector<Key> keys(count);
  std::vector<float> row(floats);
  std::string_view bytes;
  TRY(reader.GetRaw(count * sizeof(Key), &bytes));
  std::memcpy(keys.data(), bytes.data(), bytes.size());
  TRY(table->Check(keys));
  for (const Key key : keys) {
    const auto arrival = arriving_.find(partition_->ShardOf(table->spec().key_space, key));
    if (move != 0 && (arrival == arriving_.end() || arrival->second.move != move)) {
      return FailedPrecondition("copied rows of a shard that is not arriving from there");
    }
    TRY(reader.GetRaw(floats * sizeof(float), &bytes));
    std::memcpy(row.data(), bytes.data(), bytes.size());
    table->RestoreRow(key, row.data());
  }
  return Status::Ok();
}

}  // namespace shoal::ps
