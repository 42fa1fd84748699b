#include "ps/server/shard_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "base/log.h"
#include "base/mutex.h"

#include "ps/server/shard_mover.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

// Short, because other servers may be starting at the same time and not answer.
constexpr Duration kLearnWithin = std::chrono::milliseconds(500);
constexpr size_t kEntryBytes = 256u << 10;
// The shard may be frozen while so few changed rows are sent.
constexpr size_t kFewBytes = 256u << 10;

}  // namespace

ShardService::ShardService(ServerContext* context, const BlobStore* blobs)
    : context_(context), blobs_(blobs), map_(context->partition), published_(map_) {}

ShardService::~ShardService() = default;

void ShardService::Stop() {
  std::shared_ptr<ShardMover> mover;
  {
    const MutexLock lock(mover_mu_);
    mover = std::move(mover_);
  }
  if (mover != nullptr) mover->Stop();
}

ShardMap ShardService::Map() {
  const MutexLock lock(map_mu_);
  return published_;
}

Status ShardService::Merge(const ShardMap& other) {
  Lane::Guard guard(context_->first_lane());
  return MergeUnderFirst(other);
}

Status ShardService::MergeUnderFirst(ShardMap other) {
  TRY_ASSIGN(const std::vector<RestoredRows> rows, ReadMissingRows(other));
  {
    const MutexLock lock(map_mu_);
    const bool news = published_.Merge(other);
    if (!map_.Merge(other) && !news) return Status::Ok();
  }
  // As it is under the lane's lock: a shard that departs meanwhile would come back without it.
  const auto now = [this] {
    const MutexLock lock(map_mu_);
    return map_;
  };
  AdoptWithRows(0, now(), rows);
  for (uint32_t lane = 1; lane < context_->lane_count(); ++lane) {
    Lane::Guard guard(context_->lane(lane), context_->first_lane().to_flush());
    AdoptWithRows(lane, now(), rows);
  }
  NotifyClients();
  if (!rows.empty()) Announce();  // who told this server need not have told the others
  return Status::Ok();
}

ShardMap ShardService::OfPresentLanes(ShardMap map) const {
  for (uint32_t shard = 0; shard < map.shards(); ++shard) {
    ShardAssignment place = map.At(shard);
    if (place.owner.server != context_->options.index) continue;
    place.owner.lane = static_cast<uint16_t>(place.owner.lane % context_->lane_count());
    map.Set(shard, place);
  }
  return map;
}

std::set<uint32_t> ShardService::ShardsWithoutRows(uint32_t lane, const ShardMap& map) {
  const Owner self{static_cast<uint16_t>(context_->options.index), static_cast<uint16_t>(lane)};
  const ShardMap folded = OfPresentLanes(map);
  std::set<uint32_t> shards;
  for (uint32_t shard = 0; shard < folded.shards(); ++shard) {
    if (folded.At(shard).owner == self &&
        context_->lane(lane).state(shard) == ShardState::kElsewhere)
      shards.insert(shard);
  }
  return shards;
}

Result<std::vector<RestoredRows>> ShardService::ReadMissingRows(const ShardMap& map) {
  std::vector<RestoredRows> none;
  if (read_rows_ == nullptr) return none;
  MutexLock lock(map_mu_);
  ShardMap merged = map_;
  lock.unlock();
  if (!merged.Merge(map)) return none;
  std::set<uint32_t> missing = ShardsWithoutRows(0, merged);
  for (uint32_t lane = 1; lane < context_->lane_count(); ++lane) {
    Lane::Guard guard(context_->lane(lane), context_->first_lane().to_flush());
    missing.merge(ShardsWithoutRows(lane, merged));
  }
  if (missing.empty()) return none;
  LogInfo("server {}: learnt that it owns {} shards more, whose rows it reads from the checkpoint",
          context_->options.index, missing.size());
  return read_rows_(missing);
}

void ShardService::AdoptWithRows(uint32_t lane_index, const ShardMap& map,
                                 const std::vector<RestoredRows>& rows) {
  Lane& lane = context_->lane(lane_index);
  const std::set<uint32_t> missing =
      rows.empty() ? std::set<uint32_t>() : ShardsWithoutRows(lane_index, map);
  AdoptShards(&lane, map);
  for (const RestoredRows& some : rows) {
    const Status created = lane.CreateTable(some.spec);
    if (!created.ok()) {
      LogWarning("table {}: {}", some.spec.name, created.message());
      continue;
    }
    Table* const table = lane.FindTable(TableIdOf(some.spec.name));
    const size_t floats = table->saved_floats();
    for (size_t i = 0; i < some.keys.size(); ++i) {
      if (missing.contains(context_->partition.ShardOf(some.spec.key_space, some.keys[i])))
        table->RestoreRow(some.keys[i], some.values.data() + i * floats);
    }
  }
}

void ShardService::AdoptShards(Lane* lane, const ShardMap& map) {
  if (lane->ApplyShardMap(OfPresentLanes(map))) ++owned_version_;
  if (!lane->log.on()) return;
  lane->Log(BeginEntry(EntryKind::kShards, -1, 0) + EncodeShards(map));
}

void ShardService::LogState(uint32_t lane_index) {
  Lane& lane = context_->lane(lane_index);
  {
    const MutexLock lock(map_mu_);
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

// Under the first lane's lock. A client that misses this notice learns it from its next request.
void ShardService::NotifyClients() {
  FrameHeader head;
  head.type = FrameType::kShardsMoved;
  for (const auto& [id, session] : context_->first_lane().sessions()) {
    auto peer = session.peer.lock();
    if (peer == nullptr) continue;
    peer->Reply(head, {});
    context_->first_lane().QueueFlush(std::move(peer));
  }
}

void ShardService::Publish() {
  Lane::Guard guard(context_->first_lane());
  {
    const MutexLock lock(map_mu_);
    published_.Merge(map_);
  }
  NotifyClients();
}

void ShardService::AdoptAll(Lane* lane) {
  MutexLock lock(map_mu_);
  const ShardMap known = map_;
  lock.unlock();
  AdoptShards(lane, known);
}

std::shared_ptr<ShardMover> ShardService::mover() {
  const MutexLock lock(mover_mu_);
  if (mover_ == nullptr && !context_->stopped) mover_ = std::make_shared<ShardMover>(this);
  return mover_;
}

Status ShardService::Recover() {
  if (context_->options.replicas > 1 || context_->options.members == nullptr ||
      context_->options.incarnation < 1)
    return Status::Ok();
  if (context_->options.takeover_epoch > 0) return TakeOverAll();
  ShardDialer dialer(context_->options);
  TRY_ASSIGN(const ShardMap map, LearnShards(&dialer, context_->partition.shards(), kLearnWithin));
  return Merge(map);
}

Status ShardService::TakeOverAll() {
  ShardMap map(context_->partition);
  for (uint32_t shard = 0; shard < map.shards(); ++shard) {
    const uint32_t lane = map.At(shard).owner.lane % context_->lane_count();
    const Owner owner{static_cast<uint16_t>(context_->options.index), static_cast<uint16_t>(lane)};
    map.Set(shard, {owner, context_->options.takeover_epoch});
  }
  return Merge(map);
}

void ShardService::Announce() {
  if (context_->options.members == nullptr) return;  // then no shard was ever given away
  {
    const MutexLock lock(map_mu_);
    published_.Merge(map_);
    if (map_.version() == 1) return;
  }
  if (const auto moves = mover()) moves->Announce();
}

// --- What is asked of it ---

Status ShardService::HandleShards(ControlRequest* request) {
  if (!request->body.empty()) {
    ShardMap theirs;
    TRY(DecodeShards(request->body, context_->partition.shards(), &theirs));
    TRY(MergeUnderFirst(std::move(theirs)));
  }
  request->answer(Status::Ok(), EncodeShards(Map()));
  return Status::Ok();
}

Status ShardService::HandleShardBytes(ControlRequest* request) {
  const Lane& lane = context_->lane(request->from.lane);
  std::string reply;
  ByteWriter writer(&reply);
  writer.Put((leaving_ ? kShardsLeave : 0) | (drained_ ? kShardsDrained : 0));
  writer.Put(uint64_t{request->from.lane == 0 ? blobs_->bytes() : 0});
  for (uint32_t shard = 0; shard < context_->partition.shards(); ++shard) {
    if (lane.state(shard) != ShardState::kHere && lane.state(shard) != ShardState::kLeaving)
      continue;
    writer.Put(shard);
    writer.Put(lane.ShardBytes(shard));
  }
  request->answer(Status::Ok(), reply);
  return Status::Ok();
}

Status ShardService::HandleMoveShard(ControlRequest* request) {
  MoveRequest order;
  ByteReader reader(request->body);
  TRY(reader.Get(&order.shard));
  TRY(reader.Get(&order.to.server));
  TRY(reader.Get(&order.to.lane));
  if (order.shard >= context_->partition.shards()) {
    return InvalidArgument(
        fmt::format("shard {}: there are {} shards", order.shard, context_->partition.shards()));
  }
  if (context_->options.members == nullptr) {
    return FailedPrecondition("this server cannot move shards: it was started without Members");
  }
  const auto moves = mover();
  if (moves == nullptr)
    return Unavailable(fmt::format("server {} stopped", context_->options.index));
  moves->Enqueue(order, std::move(request->answer));
  return Status::Ok();
}

Status ShardService::HandleTakesRows(ControlRequest* request) {
  drained_ = request->head.argument == 0;
  request->answer(Status::Ok(), {});
  return Status::Ok();
}

// --- The owner's end ---

Status ShardService::BeginDeparture(uint32_t shard, uint32_t* lane, ShardAssignment* place) {
  {
    const MutexLock lock(map_mu_);
    *place = map_.At(shard);
  }
  if (place->owner.server != context_->options.index) {
    return FailedPrecondition(fmt::format("it is at server {}, not at server {}",
                                          place->owner.server, context_->options.index));
  }
  *lane = place->owner.lane % context_->lane_count();
  Lane::Guard guard(context_->lane(*lane));
  if (!context_->serves_clients()) return Unavailable("the server does not serve it now");
  return context_->lane(*lane).BeginDeparture(shard);
}

void ShardService::EndDeparture(uint32_t lane) {
  Lane::Guard guard(context_->lane(lane));
  context_->lane(lane).EndDeparture();
}

std::vector<std::string> ShardService::SpecsOf(uint32_t lane, std::set<uint32_t>* sent) {
  Lane::Guard guard(context_->lane(lane));
  std::vector<std::string> specs;
  for (const auto& [id, table] : context_->lane(lane).tables()) {
    if (sent->insert(id).second) EncodeSpec(table->spec(), &specs.emplace_back());
  }
  return specs;
}

std::string ShardService::CopyShard(uint32_t lane_index, RowCursor* cursor) {
  Lane& lane = context_->lane(lane_index);
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

std::vector<std::string> ShardService::CopyDirty(uint32_t lane_index, bool freeze, bool* done) {
  Lane& lane = context_->lane(lane_index);
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

Result<ShardMap> ShardService::Depart(uint32_t lane_index, uint32_t shard,
                                      const ShardAssignment& to) {
  Lane& lane = context_->lane(lane_index);
  Lane::Guard guard(lane);
  if (!context_->serves_clients()) return Unavailable("the server does not serve it now");
  if (lane.state(shard) != ShardState::kLeaving || !lane.MayDepart()) {
    return Aborted("a checkpoint began meanwhile: try again");
  }
  ShardMap decided;
  {
    const MutexLock lock(map_mu_);
    map_.Set(shard, to);
    decided = map_;
  }
  AdoptShards(&lane, decided);
  departed_at_ = lane.log.end();
  return decided;
}

bool ShardService::DepartureConfirmed(uint32_t lane_index) {
  Lane& lane = context_->lane(lane_index);
  Lane::Guard guard(lane);
  return !lane.log.paired() || (!lane.log.down() && lane.log.confirmed() >= departed_at_);
}

// --- One that leaves ---

void ShardService::SetLeaving(bool last) {
  leaving_ = true;
  if (last) empty_ = true;
}

size_t ShardService::OwnedShards() {
  size_t owned = 0;
  for (auto& lane : context_->lanes) {
    Lane::Guard guard(*lane);
    for (uint32_t shard = 0; shard < context_->partition.shards(); ++shard) {
      owned += lane->state(shard) != ShardState::kElsewhere;
    }
  }
  return owned;
}

std::map<uint32_t, Owner> ShardService::Arrivals() {
  std::map<uint32_t, Owner> arrivals;
  for (auto& lane : context_->lanes) {
    Lane::Guard guard(*lane);
    const MutexLock lock(map_mu_);
    for (const auto& [shard, arrival] : lane->arriving()) arrivals[shard] = map_.At(shard).owner;
  }
  return arrivals;
}

void ShardService::ForgetArrival(uint32_t shard) {
  for (auto& lane : context_->lanes) {
    Lane::Guard guard(*lane);
    const auto arrival = lane->arriving().find(shard);
    if (arrival == lane->arriving().end()) continue;
    ShardAssignment place;
    {
      const MutexLock lock(map_mu_);
      place = map_.At(shard);
    }
    const bool ours = place.owner.server == static_cast<uint32_t>(context_->options.index);
    if (!ours && place.epoch < arrival->second.epoch) lane->ForgetArrival(shard);
  }
}

// --- The next owner's end ---

Status ShardService::ApplyMoveFrame(const Hello& from, const FrameHeader& head,
                                    std::string_view body) {
  Lane& lane = context_->lane(from.lane);
  if (!context_->serves_clients()) return Unavailable("the server serves nothing now");
  if (head.type == FrameType::kCreateTable) {
    TableSpec spec;
    ByteReader reader(body);
    TRY(DecodeSpec(&reader, &spec));
    TRY(lane.CreateTable(spec));
    Hello no_client;
    no_client.lane = from.lane;
    LogControl(&lane, no_client, head, body);
    return Status::Ok();
  }
  if (head.type != FrameType::kReplicate)
    return InvalidArgument("a frame that does not belong to a shard move");
  Entry entry;
  TRY(ReadEntry(body, &entry));
  if (entry.kind == EntryKind::kArriving) {
    if (leaving_) {
      return FailedPrecondition(
          fmt::format("server {} leaves: it takes no rows", context_->options.index));
    }
    entry.session = from.session;
    TRY(ApplyEntry(from.lane, entry));
  } else if (entry.kind == EntryKind::kCopyRows) {
    TRY(lane.ApplyCopiedRows(entry.content, from.session));
  } else {
    return InvalidArgument("an entry that does not belong to a shard move");
  }
  if (lane.log.on())
    lane.Log(BeginEntry(entry.kind, -1, entry.session) + std::string(entry.content));
  return Status::Ok();
}

// Also of a backup.
Status ShardService::ApplyEntry(uint32_t lane_index, const Entry& entry) {
  Lane& lane = context_->lane(lane_index);
  ByteReader reader(entry.content);
  if (entry.kind == EntryKind::kMoved) {
    uint64_t seq = 0;
    TRY(reader.Get(&seq));
    lane.RecordMoved(lane.ReplicatedSession(entry.session, entry.client), seq);
    return Status::Ok();
  }
  if (entry.kind == EntryKind::kShards) {
    ShardMap map;
    TRY(DecodeShards(entry.content, context_->partition.shards(), &map));
    {
      const MutexLock lock(map_mu_);
      map_.Merge(map);
    }
    // The map that the primary's lane used then, not what other lanes' logs have told since: a
    // shard would be here before its rows, which this lane's log has yet to bring.
    AdoptShards(&lane, map);
    return Status::Ok();
  }
  uint32_t shard = 0, epoch = 0;
  TRY(reader.Get(&shard));
  TRY(reader.Get(&epoch));
  if (shard >= context_->partition.shards())
    return InvalidArgument("the index of an arriving shard is out of range");
  return lane.PrepareArrival(shard, epoch, entry.session);
}

}  // namespace shoal::ps
