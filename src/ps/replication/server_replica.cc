// A server's part in keeping copies: what a primary tells its backup, and how a backup repeats it
// (docs/design/replication.md tells the whole course).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/log.h"
#include "ps/replication/replica_host.h"
#include "ps/server/server_core.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

// Rows of one entry, and how far a new backup may be behind before it gets no more of them.
constexpr size_t kCopyBytes = 256u << 10;
constexpr size_t kBehindBytes = 8u << 20;

// Control frames that change something which a backup must have, too.
bool Changes(FrameType type) {
  switch (type) {
    case FrameType::kMarker:
    case FrameType::kSettled:
    case FrameType::kCreateTable:
    case FrameType::kClock:
    case FrameType::kBarrier:
    case FrameType::kPutBlob:
    case FrameType::kDeleteBlob:
    case FrameType::kLeave:
    case FrameType::kProgress:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<std::shared_ptr<ServerCore>> ServerCore::Route(const Hello& hello) {
  const auto host = host_.lock();
  if (host != nullptr) return host->Route(hello);
  if (hello.kind != HelloKind::kCopy) return std::shared_ptr<ServerCore>();
  return FailedPrecondition(
      fmt::format("server {} keeps no copies: start all servers with the same number of copies",
                  options_.index));
}

// --- The primary ---

void ServerCore::LogControl(const Hello& from, const FrameHeader& head, std::string_view body) {
  Lane& lane = *lanes_[from.lane];
  if (!lane.log.on() || !Changes(head.type)) return;
  std::string entry = BeginEntry(EntryKind::kControl, from.client, from.session);
  ByteWriter writer(&entry);
  writer.Put(head.id);
  writer.Put(head.argument);
  writer.Put(uint32_t{static_cast<uint8_t>(head.type)});
  writer.PutString(body);
  lane.Log(std::move(entry));
}

void ServerCore::LogServer() {
  std::string entry = BeginEntry(EntryKind::kServer, -1, 0);
  ByteWriter writer(&entry);
  writer.Put(instance_.load());
  writer.Put(restored_.load());
  writer.Put(checkpoint_ids_.last());
  workers_.Save(&writer);
  lanes_[0]->Log(std::move(entry));
  for (const auto& [worker, bytes] : progress_) {
    lanes_[0]->Log(BeginEntry(EntryKind::kProgress, worker, 0) + bytes);
  }
  LogBlobs();
}

void ServerCore::LogBlobs() {
  blobs_.ForEachPiece([this](const BlobStore::Piece& piece, uint64_t session) {
    std::string entry = BeginEntry(EntryKind::kBlob, -1, session);
    ByteWriter writer(&entry);
    writer.PutString(piece.name);
    writer.Put(piece.upload);
    writer.Put(piece.total);
    writer.Put(piece.offset);
    writer.PutString(piece.bytes);
    lanes_[0]->Log(std::move(entry));
  });
}

void ServerCore::StartReplication(uint32_t lane_index, std::shared_ptr<ReplicaConnection> stream) {
  Lane& lane = *lanes_[lane_index];
  Lane::Guard guard(lane);
  lane.log.Open(std::move(stream));
  if (lane_index == 0) LogServer();
  // Before its tables: which shards it has.
  LogShards(lane_index);
  for (const uint64_t session : lane.replaced()) {
    std::string entry = BeginEntry(EntryKind::kSession, -1, session);
    ByteWriter writer(&entry);
    writer.Put(uint64_t{0});
    for (const bool flag : {false, false, true}) writer.Put(static_cast<uint8_t>(flag));
    lane.Log(std::move(entry));
  }
  for (const auto& [id, session] : lane.sessions()) {
    std::string entry = BeginEntry(EntryKind::kSession, session.client, id);
    ByteWriter writer(&entry);
    writer.Put(session.last_seq);
    for (const bool flag : {session.left, session.dead, false}) {
      writer.Put(static_cast<uint8_t>(flag));
    }
    lane.Log(std::move(entry));
    for (const uint64_t seq : session.moved) {
      std::string moved = BeginEntry(EntryKind::kMoved, session.client, id);
      ByteWriter(&moved).Put(seq);
      lane.Log(std::move(moved));
    }
  }
  Hello nobody;
  nobody.lane = lane_index;
  FrameHeader head;
  head.type = FrameType::kCreateTable;
  for (const auto& [id, table] : lane.tables()) {
    std::string spec;
    EncodeSpec(table->spec(), &spec);
    LogControl(nobody, head, spec);
  }
}

void ServerCore::ResumeReplication(uint32_t lane_index, std::shared_ptr<ReplicaConnection> stream,
                                   uint64_t confirmed) {
  Lane& lane = *lanes_[lane_index];
  Lane::Guard guard(lane);
  lane.log.Resume(std::move(stream), confirmed);
  lane.QueueFlush(lane.log.stream());
  lane.SendReady();
}

// Rows are copied as they are at that moment, between entries: what came before is in them, what
// comes after is repeated upon them.
bool ServerCore::LogRows(uint32_t lane_index, RowCursor* cursor) {
  Lane& lane = *lanes_[lane_index];
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
  while (keys.empty() && cursor->shard < partition_.shards()) {
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

void ServerCore::EnableSyncReplication(uint32_t lane_index) {
  Lane& lane = *lanes_[lane_index];
  Lane::Guard guard(lane);
  lane.log.Pair();
  lane.Log(BeginEntry(EntryKind::kPaired, -1, 0));
}

void ServerCore::PingBackups() {
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    if (lane->log.paired() && lane->log.confirmed() == lane->log.end()) {
      lane->Log(BeginEntry(EntryKind::kNothing, -1, 0));
    }
  }
}

void ServerCore::StopReplication() {
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    lane->log.Close();
    lane->SendReady();
  }
}

ServerCore::LogState ServerCore::log_state(uint32_t lane_index) {
  Lane& lane = *lanes_[lane_index];
  Lane::Guard guard(lane);
  return {lane.log.down(), lane.log.paired(), lane.log.end(), lane.log.confirmed()};
}

void ServerCore::OnReplicaConfirmed(uint32_t lane_index, const ReplicaConnection* from,
                                    uint64_t position) {
  Lane& lane = *lanes_[lane_index];
  Lane::Guard guard(lane);
  if (lane.log.stream().get() == from) lane.Confirm(position);
}

void ServerCore::OnReplicaConnectionLost(uint32_t lane_index, const ReplicaConnection* stream) {
  Lane& lane = *lanes_[lane_index];
  std::shared_ptr<ReplicaConnection> last;  // goes after the lock
  Lane::Guard guard(lane);
  last = lane.log.stream();
  lane.log.Detach(stream);
}

// --- The backup ---

Result<Welcome> ServerCore::JoinServer(const Hello& hello,
                                       const std::shared_ptr<ServerConnection>& peer) {
  Welcome welcome;
  welcome.instance = instance_;
  welcome.server = hello.server;
  welcome.servers = options_.initial_servers;
  welcome.lanes = lanes();
  welcome.shards = partition_.shards();
  welcome.ownership = static_cast<uint64_t>(options_.incarnation);
  if (hello.kind == HelloKind::kRecoveryLookup) {
    if (options_.replicas == 1) return welcome;  // it asks for the shards alone
    const auto host = host_.lock();
    if (host == nullptr) return Unavailable("the server stops");
    welcome.last_seq = host->AnswerRecoveryLookup(hello) ? 1 : 0;
    return welcome;
  }
  if (hello.lane >= lanes()) return InvalidArgument("a copy of a lane that there is not");
  if (hello.kind == HelloKind::kMove) {
    if (role_ == Role::kPrimary && !stopped_) return welcome;
    return Unavailable(fmt::format("server {} is not served here", hello.server));
  }
  Lane& lane = *lanes_[hello.lane];
  Lane::Guard guard(lane);
  if (role_ != Role::kBackup || stopped_) {
    return Unavailable(fmt::format("server {} takes no copy now", options_.index));
  }
  if (auto old = lane.primary_connection.lock(); old != nullptr && old != peer) {
    old->Shut(Aborted("the primary connected again"));
    lane.QueueFlush(std::move(old));
  }
  lane.primary_connection = peer;
  last_entry_at_ = options_.clock->Now().time_since_epoch().count();
  welcome.last_seq = lane.copied;
  return welcome;
}

bool ServerCore::has_primary_connection() {
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    if (!lane->primary_connection.expired()) return true;
  }
  return false;
}

Status ServerCore::ServerControl(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                                 const FrameHeader& head, std::string_view body) {
  if (from.kind == HelloKind::kMove || from.kind == HelloKind::kRecoveryLookup) {
    return HandleMoveFrame(from, peer, head, body);
  }
  if (head.type != FrameType::kReplicate || from.kind != HelloKind::kCopy) {
    return InvalidArgument("only a primary sends entries, and nothing else");
  }
  Lane& lane = *lanes_[from.lane];
  if (role_ != Role::kBackup || lane.primary_connection.lock() != peer) {
    return Aborted(fmt::format("server {} is no copy any more", options_.index));
  }
  if (head.id == 0 || head.id > lane.copied + 1) {
    return InvalidArgument(
        fmt::format("entry {} came after {}, expected no gap", head.id, lane.copied));
  }
  if (head.id == lane.copied + 1) {
    Entry entry;
    TRY(ReadEntry(body, &entry));
    try {
      TRY(ApplyEntry(from.lane, entry).With("an entry of the primary"));
    } catch (const std::bad_alloc&) {
      return ResourceExhausted(fmt::format("server {} has no memory for a copy", options_.index));
    }
    lane.copied = head.id;
  }
  last_entry_at_ = options_.clock->Now().time_since_epoch().count();
  FrameHeader reply;
  reply.type = FrameType::kReply;
  reply.id = lane.copied;
  peer->Reply(reply, {});
  auto* to_flush = lane.to_flush();
  if (to_flush->empty() || to_flush->back() != peer) lane.QueueFlush(peer);
  return Status::Ok();
}

// Errors mean that the entry is none. What the primary refused, the backup refuses as well.
Status ServerCore::ApplyEntry(uint32_t lane, const Entry& entry) {
  switch (entry.kind) {
    case EntryKind::kRows:
      return ApplyRowsEntry(lane, entry);
    case EntryKind::kJoin:
      return ApplyJoinEntry(lane, entry);
    case EntryKind::kControl:
      return ApplyControlEntry(lane, entry);
    case EntryKind::kLost:
      if (lane == 0) blobs_.ForgetUploadsOf(entry.session);
      return Status::Ok();
    case EntryKind::kDead:
      if (lane == 0) RemoveWorker(entry.client);
      return Status::Ok();
    case EntryKind::kCopyRows:
      return TakeRows(lane, entry.content, 0);
    case EntryKind::kPaired:
      lanes_[lane]->whole = true;
      return Status::Ok();
    case EntryKind::kNothing:
      return Status::Ok();
    case EntryKind::kEmptied:
      emptied_ = true;
      return Status::Ok();
    case EntryKind::kMoved:
    case EntryKind::kShards:
    case EntryKind::kArriving:
      return ApplyShardsEntry(lane, entry);
    default:
      return ApplyStateEntry(lane, entry);
  }
}

Status ServerCore::ApplyRowsEntry(uint32_t lane_index, const Entry& entry) {
  Lane& lane = *lanes_[lane_index];
  FrameHeader head;
  TRY(ReadHeader(entry.content.substr(0, sizeof head), kMaxPayload, &head));
  const std::string_view payload = entry.content.substr(sizeof head);
  const bool plain = head.key_bytes >= 4 && head.key_slot == 0 && !WantsRows(head);
  if (!plain || payload.size() != head.payload ||
      (head.type != FrameType::kPush && head.type != FrameType::kCall)) {
    return InvalidArgument("rows that do not fit");
  }
  Session* session = lane.ReplicatedSession(entry.session, entry.client);
  session->last_seq = std::max(session->last_seq, head.id - 1);
  RowSource source;
  source.front = payload.substr(0, ArgumentArea(head) + KeyAreaOf(head));
  source.values = payload.data() + source.front.size();
  bool order = false;
  const Status status = lane.RowOperation(session, head, source, &order);
  return order ? status : Status::Ok();
}

Status ServerCore::ApplyJoinEntry(uint32_t lane, const Entry& entry) {
  Hello hello;
  hello.client = entry.client;
  hello.session = entry.session;
  hello.lane = lane;
  ByteReader reader(entry.content);
  TRY(reader.Get(&hello.first_seq));
  TRY(reader.Get(&hello.clock));
  if (hello.session == 0 || hello.first_seq == 0) return InvalidArgument("a join of nobody");
  const auto joined = lanes_[lane]->Join(hello, nullptr);
  if (joined.ok() && is_leader() && lane == 0 && hello.client >= 0) {
    workers_.Join(hello.client, hello.session, hello.clock);
  }
  return Status::Ok();
}

Status ServerCore::ApplyControlEntry(uint32_t lane_index, const Entry& entry) {
  Lane& lane = *lanes_[lane_index];
  FrameHeader head;
  uint32_t type = 0;
  std::string_view body;
  ByteReader reader(entry.content);
  TRY(reader.Get(&head.id));
  TRY(reader.Get(&head.argument));
  TRY(reader.Get(&type));
  TRY(reader.GetString(&body, kMaxPayload));
  head.type = static_cast<FrameType>(type & 0xff);
  if (!Changes(head.type)) return InvalidArgument("a control frame that changes nothing");
  Hello from;
  from.client = entry.client;
  from.session = entry.session;
  from.lane = lane_index;
  if (head.type == FrameType::kCreateTable) {
    TableSpec spec;
    ByteReader bytes(body);
    TRY(DecodeSpec(&bytes, &spec));
    const Status refused = lane.CreateTable(spec);
    return Status::Ok();
  }
  const bool mark = head.type == FrameType::kMarker || head.type == FrameType::kSettled;
  if (mark || head.type == FrameType::kProgress) {
    if (mark) {
      lane.ApplyMarkerOfPrimary(lane.ReplicatedSession(from.session, from.client), head.id,
                                static_cast<int64_t>(head.argument));
    }
    if (is_leader() && lane_index == 0 && from.client >= 0 && !body.empty()) {
      progress_[from.client] = body;
    }
    return Status::Ok();
  }
  Request request{from, lane.ReplicatedSession(from.session, from.client), head, body,
                  [](const Status&, std::string_view) {}};
  const Status refused = Handle(&request);
  return Status::Ok();
}

Status ServerCore::ApplyStateEntry(uint32_t lane_index, const Entry& entry) {
  Lane& lane = *lanes_[lane_index];
  if (entry.kind == EntryKind::kSession) {
    uint64_t last_seq = 0;
    uint8_t left = 0, dead = 0, replaced = 0;
    ByteReader reader(entry.content);
    TRY(reader.Get(&last_seq));
    TRY(reader.Get(&left));
    TRY(reader.Get(&dead));
    TRY(reader.Get(&replaced));
    if (replaced != 0) {
      lane.MarkSessionReplaced(entry.session);
      return Status::Ok();
    }
    Session* session = lane.ReplicatedSession(entry.session, entry.client);
    session->last_seq = last_seq;
    session->left = left != 0;
    session->dead = dead != 0;
    return Status::Ok();
  }
  if (lane_index != 0) return InvalidArgument("an entry that belongs to the first lane");
  switch (entry.kind) {
    case EntryKind::kServer:
      return ApplyServerEntry(entry.content);
    case EntryKind::kProgress:
      progress_[entry.client] = entry.content;
      return Status::Ok();
    case EntryKind::kBlob:
      return ApplyBlobEntry(entry);
    default:
      return InvalidArgument("an entry of no kind");
  }
}

Status ServerCore::ApplyServerEntry(std::string_view content) {
  ByteReader reader(content);
  // Other lanes' threads may look meanwhile, at what is right before and after.
  uint64_t instance = 0;
  int64_t restored = 0;
  TRY(reader.Get(&instance));
  TRY(reader.Get(&restored));
  instance_ = instance;
  restored_ = restored;
  int64_t last_checkpoint = 0;
  TRY(reader.Get(&last_checkpoint));
  checkpoint_ids_.SetLast(last_checkpoint);
  return workers_.Load(&reader);
}

Status ServerCore::ApplyBlobEntry(const Entry& entry) {
  BlobStore::Piece piece;
  ByteReader reader(entry.content);
  TRY(reader.GetString(&piece.name, kMaxNameBytes));
  TRY(reader.Get(&piece.upload));
  TRY(reader.Get(&piece.total));
  TRY(reader.Get(&piece.offset));
  TRY(reader.GetString(&piece.bytes, kBlobPiece));
  if (entry.session != 0) blobs_.OwnUpload(piece.upload, entry.session);
  return blobs_.Put(piece);
}

Status ServerCore::TakeRows(uint32_t lane, std::string_view content, uint64_t move) {
  uint32_t id = 0, floats = 0, count = 0, zero = 0;
  ByteReader reader(content);
  TRY(reader.Get(&id));
  TRY(reader.Get(&floats));
  TRY(reader.Get(&count));
  TRY(reader.Get(&zero));
  Table* table = lanes_[lane]->FindTable(id);
  if (table == nullptr || table->saved_floats() != floats ||
      reader.remaining() != uint64_t{count} * (sizeof(Key) + uint64_t{floats} * sizeof(float))) {
    return InvalidArgument("rows of a table that is not so");
  }
  std::vector<Key> keys(count);
  std::vector<float> row(floats);
  std::string_view bytes;
  TRY(reader.GetRaw(count * sizeof(Key), &bytes));
  std::memcpy(keys.data(), bytes.data(), bytes.size());
  TRY(table->Check(keys));
  const auto& arriving = lanes_[lane]->arriving();
  for (const Key key : keys) {
    const auto arrival = arriving.find(partition_.ShardOf(table->spec().key_space, key));
    if (move != 0 && (arrival == arriving.end() || arrival->second.move != move)) {
      return FailedPrecondition("rows of a shard that does not come from there");
    }
    TRY(reader.GetRaw(floats * sizeof(float), &bytes));
    std::memcpy(row.data(), bytes.data(), bytes.size());
    table->RestoreRow(key, row.data());
  }
  return Status::Ok();
}

bool ServerCore::whole() {
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    if (!lane->whole) return false;
  }
  return true;
}

void ServerCore::TakeOver() {
  role_ = Role::kStandby;
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    // Nothing of the primary's is repeated from here on.
    if (auto old = lane->primary_connection.lock()) {
      old->Shut(Aborted(fmt::format("server {} has been taken over", options_.index)));
      lane->QueueFlush(std::move(old));
    }
    lane->primary_connection.reset();
    {
      // Another lane's log may have told that a shard has arrived here: then its rows are here.
      std::unique_lock lock(map_mu_);
      const ShardMap known = map_;
      lock.unlock();
      AdoptShards(lane.get(), known);
    }
    if (lane.get() != lanes_[0].get() || !is_leader()) continue;
    for (const auto& [id, session] : lane->sessions()) {
      if (session.client >= 0 && !session.left && !session.dead) {
        lost_[session.client] = options_.clock->Now();
      }
    }
  }
  role_ = Role::kPrimary;
  // The dead one may have decided something that only we know of.
  AnnounceShards();
}

}  // namespace shoal::ps
