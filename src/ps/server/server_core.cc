#include "ps/server/server_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>

#include "base/id.h"
#include "base/log.h"
#include "ps/checkpoint/restore_point.h"
#include "ps/server/shard_connection.h"
#include "ps/server/shard_mover.h"
#include "ps/storage/memory_limit.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

constexpr int kMaxWorkers = 1 << 20;

uint64_t NewInstance() {
  const uint64_t seed = RandomSeed();
  return seed == 0 ? 1 : seed;
}

Status CheckOptions(const ServerOptions& options) {
  if (options.servers < 1 || options.servers > kMostServers || options.index < 0 ||
      options.index >= options.servers) {
    return InvalidArgument(
        fmt::format("server index {} of {}: expected 0 <= index < servers <= "
                    "65535",
                    options.index, options.servers));
  }
  if (options.threads < 1 || options.threads > 1024) {
    return InvalidArgument(fmt::format("threads: got {}, expected 1 to 1024", options.threads));
  }
  if (!std::has_single_bit(options.shards) || options.shards > 65536 ||
      options.shards < static_cast<uint32_t>(options.servers)) {
    return InvalidArgument(
        fmt::format("shards: got {}, expected a power of two from the number of servers to 65536",
                    options.shards));
  }
  if (options.replicas != 1 &&
      (options.replicas != 2 || options.servers < 2 || options.members == nullptr)) {
    return InvalidArgument(
        fmt::format("copies: got {} with {} servers, expected 1, or 2 with at least 2 servers and "
                    "their Members",
                    options.replicas, options.servers));
  }
  if (options.token.empty()) return InvalidArgument("token: a server needs the job's secret");
  return Status::Ok();
}

// "worker 3 has not entered, worker 4 has not entered, and 2 more"; empty if nobody is late.
std::string Waiting(std::string_view what, const std::vector<int>& workers) {
  constexpr size_t kNamed = 8;
  std::string text;
  for (size_t i = 0; i < std::min(workers.size(), kNamed); ++i) {
    text += fmt::format("{}worker {} {}", i == 0 ? "" : ", ", workers[i], what);
  }
  if (workers.size() > kNamed) text += fmt::format(", and {} more", workers.size() - kNamed);
  return text;
}

// The reply to a worker that gives up a barrier.
Result<std::string> LeaveBarrier(WorkerRegistry* workers, int worker, std::string_view body) {
  uint64_t id = 0;
  std::string_view name;
  ByteReader reader(body);
  TRY(reader.Get(&id));
  TRY(reader.GetString(&name, kMaxNameBytes));
  const std::string barrier(name);
  // First who is late: from now on the worker itself is.
  const std::string late = Waiting("has not entered", workers->WorkersNotEntered(barrier));
  std::string reply;
  ByteWriter writer(&reply);
  writer.Put(static_cast<uint8_t>(workers->LeaveBarrier(worker, barrier, id)));
  writer.PutString(late);
  return reply;
}

}  // namespace

ServerCore::ServerCore(ServerOptions options)
    : options_(std::move(options)),
      instance_(NewInstance()),
      // Which lane of another server owns a shard does not matter here.
      partition_(options_.shards,
                 std::vector<uint32_t>(static_cast<size_t>(options_.initial_servers),
                                       static_cast<uint32_t>(options_.threads))),
      map_(partition_),
      published_(map_),
      blobs_(options_.max_blob_bytes, options_.max_blobs_bytes),
      workers_(options_.workers),
      checkpoint_ids_(options_.checkpoint_dir),
      chain_(options_.checkpoint_dir, options_.checkpoint_deltas) {
  const uint64_t memory = MemoryLimit();
  for (int lane = 0; lane < options_.threads; ++lane) {
    lanes_.push_back(std::make_unique<Lane>(
        &partition_, Owner{static_cast<uint16_t>(options_.index), static_cast<uint16_t>(lane)},
        options_.functions.get()));
    lanes_.back()->LimitMemory(memory / static_cast<uint64_t>(options_.threads));
    if (!options_.checkpoint_dir.empty()) lanes_.back()->TrackChanges();
  }
}

Result<std::shared_ptr<ServerCore>> ServerCore::Make(ServerOptions options) {
  TRY(CheckOptions(options));
  if (options.initial_servers == 0) options.initial_servers = LookUpInitialServers(options);
  std::shared_ptr<ServerCore> core(new ServerCore(std::move(options)));
  TRY(core->RecoverShardMap());
  if (!core->options_.checkpoint_dir.empty()) {
    TRY(MakeDirectories(core->options_.checkpoint_dir, 0700));
    if (core->options_.restore && core->options_.replicas == 1) TRY(core->Restore());
    // With copies another server may have led before.
    if (core->is_leader() && core->options_.replicas == 1) TRY(core->checkpoint_ids_.Guard());
  }
  core->lost_rows_ = CameBackEmpty(core->options_, core->shards(), core->restored_);
  return core;
}

std::shared_ptr<ServerCore> ServerCore::MakeBackup(ServerOptions options) {
  std::shared_ptr<ServerCore> core(new ServerCore(std::move(options)));
  core->role_ = Role::kBackup;
  return core;
}

ServerCore::~ServerCore() { Stop(); }

void ServerCore::Stop() {
  stopped_ = true;
  std::thread worker;
  std::shared_ptr<ShardMover> moves;
  {
    std::scoped_lock lock(work_mu_, mover_mu_);
    worker = std::move(worker_);
    moves = std::move(mover_);
  }
  work_cv_.notify_all();
  if (worker.joinable()) worker.join();
  if (moves != nullptr) moves->Stop();
  DropClients();
}

bool ServerCore::WaitForStop(Duration time) {
  std::unique_lock lock(work_mu_);
  return work_cv_.wait_for(lock, time, [this] { return stopped_.load(); });
}

void ServerCore::DropClients() {
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    for (const auto& [id, session] : lane->sessions()) {
      if (auto peer = session.peer.lock()) {
        peer->Shut(Unavailable(fmt::format("server {} stopped", options_.index)));
        lane->QueueFlush(std::move(peer));
      }
    }
    if (auto peer = lane->primary_connection.lock()) {
      peer->Shut(Unavailable(fmt::format("server {} stopped", options_.index)));
      lane->QueueFlush(std::move(peer));
    }
  }
}

Result<Welcome> ServerCore::Join(const Hello& hello,
                                 const std::shared_ptr<ServerConnection>& peer) {
  if (hello.kind != HelloKind::kClient) return JoinServer(hello, peer);
  if (hello.lane >= lanes() || hello.session == 0 || hello.first_seq == 0 || hello.client < -1 ||
      hello.client > kMaxWorkers) {
    return InvalidArgument(fmt::format("a client said hello as worker {} to lane {} of {}",
                                       hello.client, hello.lane, lanes()));
  }
  Lane& lane = *lanes_[hello.lane];
  Lane::Guard guard(lane);
  if (stopped_) return Unavailable(fmt::format("server {} stopped", options_.index));
  if (role_ != Role::kPrimary || empty_) {
    return Unavailable(fmt::format("server {} is not served here", options_.index));
  }
  const bool leader = is_leader() && hello.lane == 0 && hello.client >= 0;
  if (leader && awaiting_markers_ && lane.FindSession(hello.session) == nullptr) {
    if (!MustSendMarker(hello.client)) {
      return Unavailable("a checkpoint is being cut; newcomers wait for a moment");
    }
    // Its predecessor is dead, and its marker may never reach every server.
    AbortCheckpoint(checkpoint_, Aborted(fmt::format("worker {} was started again before all "
                                                     "servers had its marker",
                                                     hello.client)));
  }
  lane.ForgetObservers(options_.clock->Now());
  TRY_ASSIGN(Session * session, lane.Join(hello, peer));
  if (leader) {
    lost_.erase(hello.client);
    workers_.Join(hello.client, hello.session, hello.clock);
  }
  if (lane.log.on()) {
    std::string entry = BeginEntry(EntryKind::kJoin, hello.client, hello.session);
    ByteWriter writer(&entry);
    writer.Put(hello.first_seq);
    writer.Put(hello.clock);
    lane.Log(std::move(entry));
  }
  Welcome welcome;
  welcome.instance = instance_;
  welcome.server = options_.index;
  welcome.servers = options_.initial_servers;
  welcome.lanes = lanes();
  welcome.shards = partition_.shards();
  welcome.ownership = shards().version();
  welcome.restored_checkpoint = restored_;
  welcome.lost_rows = lost_rows_;
  welcome.last_seq = session->last_seq;
  return welcome;
}

// By what has come to this lane.
std::vector<int> ServerCore::WorkersWithoutMarker() const {
  std::vector<int> workers;
  for (const uint64_t id : must_send_marker_) {
    const Session* session = lanes_[0]->FindSession(id);
    if (session != nullptr && session->settled != checkpoint_ && !session->left)
      workers.push_back(session->client);
  }
  std::sort(workers.begin(), workers.end());
  return workers;
}

// Answers, once nothing of it is left, with whose markers it still waited for.
Status ServerCore::CheckpointAbort(Request* request) {
  const auto id = static_cast<int64_t>(request->head.argument);
  std::string late;
  if (is_leader() && id == checkpoint_ && awaiting_markers_) {
    late = Waiting("has not sent its marker", WorkersWithoutMarker());
  }
  AbortCheckpoint(id, Aborted("it was given up"));
  WhenIdle([answer = std::move(request->answer), late] { answer(Status::Ok(), late); });
  return Status::Ok();
}

void ServerCore::OnWelcomed(const Hello& hello) {
  if (!is_leader() || hello.lane != 0) return;
  Lane::Guard guard(*lanes_[0]);
  // The request for its marker may have gone down with its last connection.
  if (awaiting_markers_ && must_send_marker_.contains(hello.session))
    RequestMarkers({hello.session}, checkpoint_);
}

void ServerCore::OnConnectionLost(const Hello& hello, const ServerConnection* peer) {
  if (hello.lane >= lanes() || hello.kind != HelloKind::kClient) return;
  Lane& lane = *lanes_[hello.lane];
  Lane::Guard guard(lane);
  Session* session = lane.FindSession(hello.session);
  if (session == nullptr || stopped_) return;
  const auto present = session->peer.lock();
  if (present != nullptr && present.get() != peer) return;  // it has connected again
  session->key_cache.Clear();
  if (hello.lane == 0) {
    blobs_.ForgetUploadsOf(hello.session);
    lane.Log(BeginEntry(EntryKind::kLost, hello.client, hello.session));
  }
  if (!is_leader() || hello.lane != 0) return;
  if (checkpoint_ >= 0 && hello.session == checkpoint_owner_) {
    AbortCheckpoint(checkpoint_, Aborted("whoever drove the checkpoint is gone"));
  }
  if (hello.client >= 0 && !session->left) lost_[hello.client] = options_.clock->Now();
}

Answer ServerCore::AnswerTo(const std::shared_ptr<ServerConnection>& peer, uint64_t id,
                            Lane* lane) const {
  return [weak = std::weak_ptr<ServerConnection>(peer), id, lane](const Status& status,
                                                                  std::string_view body) {
    auto alive = weak.lock();
    if (alive == nullptr) return;
    FrameHeader head;
    head.id = id;
    head.type = status.ok() ? FrameType::kReply : FrameType::kError;
    if (status.ok()) {
      lane->Respond(alive, head, body);
    } else {
      lane->Respond(alive, head, EncodeError(status));
    }
    lane->QueueFlush(std::move(alive));
  };
}

Status ServerCore::HandleMarker(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                                const FrameHeader& head, std::string_view body) {
  Lane& lane = *lanes_[from.lane];
  Session* session = lane.FindSession(from.session);
  if (session == nullptr) return FailedPrecondition("the connection's session has been replaced");
  if (body.size() > kMaxProgressBytes) return InvalidArgument("a marker's progress is too long");
  // Before the marker itself: it may be the last one that the cut waits for.
  if (is_leader() && from.lane == 0 && head.id > session->last_seq && from.client >= 0 &&
      !body.empty()) {
    progress_[from.client] = body;
    marker_progress_[from.client] = body;
  }
  TRY(head.type == FrameType::kMarker ? lane.Marker(session, head) : lane.Settled(session, head));
  LogControl(from, head, body);
  FrameHeader ack;
  ack.type = FrameType::kAck;
  ack.id = head.id;
  lane.Respond(peer, ack, {});
  lane.QueueFlush(peer);
  return Status::Ok();
}

Status ServerCore::Control(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                           const FrameHeader& head, std::string_view body) {
  if (head.type == FrameType::kReplicate || from.kind != HelloKind::kClient) {
    return ServerControl(from, peer, head, body);
  }
  if (head.type == FrameType::kMarker || head.type == FrameType::kSettled) {
    return HandleMarker(from, peer, head, body);
  }
  Lane& lane = *lanes_[from.lane];
  Session* session = lane.FindSession(from.session);
  if (session == nullptr) return FailedPrecondition("the connection's session has been replaced");
  if (head.type == FrameType::kProgress) {
    if (body.size() > kMaxProgressBytes) return InvalidArgument("a progress is too long");
    if (is_leader() && from.lane == 0 && from.client >= 0) progress_[from.client] = body;
    LogControl(from, head, body);
    return Status::Ok();
  }
  Request request{from, session, head, body, AnswerTo(peer, head.id, &lane)};
  const Answer answer = request.answer;
  LogControl(from, head, body);
  try {
    const Status status = Handle(&request);
    if (!status.ok()) answer(status, {});
  } catch (const std::bad_alloc&) {
    answer(ResourceExhausted(fmt::format("server {} is out of memory", options_.index)), {});
  }
  return Status::Ok();
}

Status ServerCore::Handle(Request* request) {
  switch (request->head.type) {
    case FrameType::kCreateTable: {
      TableSpec spec;
      ByteReader reader(request->body);
      TRY(DecodeSpec(&reader, &spec));
      TRY(lanes_[request->from.lane]->CreateTable(spec));
      request->answer(Status::Ok(), {});
      return Status::Ok();
    }
    case FrameType::kDescribe: {
      std::string report;
      EncodeReport(lanes_[request->from.lane]->Describe(), &report);
      if (report.size() > kMaxPayload) return ResourceExhausted("too many tables to describe");
      request->answer(Status::Ok(), report);
      return Status::Ok();
    }
    case FrameType::kLeave:
      Leave(request);
      return Status::Ok();
    case FrameType::kShardBytes:
      return ShardBytes(request);
    case FrameType::kCheckpointBegin:
      return CheckpointBegin(request);
    default:
      break;
  }
  if (request->from.lane != 0) return Unimplemented("this request belongs to the server's lane 0");
  switch (request->head.type) {
    case FrameType::kPutBlob:
    case FrameType::kGetBlob:
    case FrameType::kListBlobs:
    case FrameType::kDeleteBlob:
      return HandleBlob(request);
    case FrameType::kCheckpointWrite:
      return CheckpointWrite(request);
    case FrameType::kShards:
      return HandleShards(request);
    case FrameType::kMoveShard:
      return MoveShard(request);
    case FrameType::kTakesRows:
      drained_ = request->head.argument == 0;
      request->answer(Status::Ok(), {});
      return Status::Ok();
    case FrameType::kCheckpointAbort:
      return CheckpointAbort(request);
    default:
      return HandleLeader(request);
  }
}

Status ServerCore::HandleLeader(Request* request) {
  if (!is_leader()) return Unimplemented("this request belongs to server 0");
  switch (request->head.type) {
    case FrameType::kClock:
      return Clock(request);
    case FrameType::kBarrier:
      return Barrier(request);
    case FrameType::kGetProgress:
      return GetProgress(request);
    case FrameType::kReportDead:
      RemoveWorker(static_cast<int>(request->head.argument & 0x7fffffff));
      request->answer(Status::Ok(), {});
      return Status::Ok();
    case FrameType::kCutting: {
      std::string reply;
      ByteWriter(&reply).Put(checkpoint_);
      request->answer(Status::Ok(), reply);
      return Status::Ok();
    }
    case FrameType::kCheckpointStart:
      return CheckpointStart(request);
    case FrameType::kCheckpointCommit:
      return CheckpointCommit(request);
    default:
      return Unimplemented("a server does not answer this kind of frame");
  }
}

Status ServerCore::HandleBlob(Request* request) {
  switch (request->head.type) {
    case FrameType::kPutBlob:
      return PutBlob(request);
    case FrameType::kGetBlob:
      return GetBlob(request);
    case FrameType::kListBlobs: {
      std::string names;
      ByteWriter writer(&names);
      for (const std::string& name : blobs_.List(request->body)) writer.PutString(name);
      if (names.size() > kMaxPayload) return ResourceExhausted("too many blobs to list: narrow it");
      request->answer(Status::Ok(), names);
      return Status::Ok();
    }
    default:
      blobs_.Delete(request->body);
      request->answer(Status::Ok(), {});
      return Status::Ok();
  }
}

Status ServerCore::PutBlob(Request* request) {
  BlobStore::Piece piece;
  ByteReader reader(request->body);
  TRY(reader.GetString(&piece.name, kMaxNameBytes));
  TRY(reader.Get(&piece.upload));
  TRY(reader.Get(&piece.total));
  TRY(reader.Get(&piece.offset));
  TRY(reader.GetString(&piece.bytes, kBlobPiece));
  if (piece.name.empty()) return InvalidArgument("a blob needs a name");
  blobs_.OwnUpload(piece.upload, request->from.session);
  TRY(blobs_.Put(piece));
  request->answer(Status::Ok(), {});
  return Status::Ok();
}

Status ServerCore::GetBlob(Request* request) {
  std::string_view name;
  uint64_t offset = 0, version = 0;
  ByteReader reader(request->body);
  TRY(reader.GetString(&name, kMaxNameBytes));
  TRY(reader.Get(&offset));
  const BlobStore::Content content = blobs_.Get(name, &version);
  if (content == nullptr) return NotFound(fmt::format("there is no blob '{}'", name));
  if (offset > content->size())
    return OutOfRange(fmt::format("blob '{}' ends before {}", name, offset));
  std::string reply;
  ByteWriter writer(&reply);
  writer.Put(version);
  writer.Put(uint64_t{content->size()});
  writer.PutString(std::string_view(*content).substr(offset, kBlobPiece));
  request->answer(Status::Ok(), reply);
  return Status::Ok();
}

Status ServerCore::Clock(Request* request) {
  if (request->from.client < 0) return FailedPrecondition("an observer has no clock");
  uint32_t staleness = 0;
  char waits = 0;
  ByteReader reader(request->body);
  TRY(reader.Get(&waits));
  TRY(reader.Get(&staleness));
  if (waits == kAsksWhoIsLate) {
    request->answer(
        Status::Ok(),
        Waiting("has not come so far", workers_.WorkersBehind(request->head.argument, staleness)));
    return Status::Ok();
  }
  workers_.ReportClock(request->from.client, request->head.argument,
                       waits != 0 ? std::optional<uint32_t>(staleness) : std::nullopt,
                       std::move(request->answer));
  return Status::Ok();
}

Status ServerCore::Barrier(Request* request) {
  if (request->from.client < 0) return FailedPrecondition("an observer takes no part in barriers");
  if (request->head.argument == kLeavesBarrier) {
    TRY_ASSIGN(const std::string reply,
               LeaveBarrier(&workers_, request->from.client, request->body));
    request->answer(Status::Ok(), reply);
    return Status::Ok();
  }
  if (request->body.size() > kMaxNameBytes) return InvalidArgument("a barrier's name is too long");
  if (request->head.argument == kAsksWhoIsLate) {
    request->answer(Status::Ok(), Waiting("has not entered",
                                          workers_.WorkersNotEntered(std::string(request->body))));
    return Status::Ok();
  }
  workers_.EnterBarrier(request->from.client, std::string(request->body), request->head.id,
                        std::move(request->answer));
  return Status::Ok();
}

Status ServerCore::GetProgress(Request* request) {
  const auto worker = static_cast<int>(request->head.argument & 0x7fffffff);
  const auto found = progress_.find(worker);
  if (found == progress_.end()) return NotFound(fmt::format("worker {} left no progress", worker));
  request->answer(Status::Ok(), found->second);
  return Status::Ok();
}

void ServerCore::Leave(Request* request) {
  lanes_[request->from.lane]->Leave(request->session);
  if (is_leader() && request->from.lane == 0 && request->from.client >= 0) {
    if (!request->body.empty() && request->body.size() <= kMaxProgressBytes) {
      progress_[request->from.client] = request->body;
    }
    lost_.erase(request->from.client);
    workers_.Remove(request->from.client);
  }
  request->answer(Status::Ok(), {});
}

void ServerCore::RemoveWorker(int worker) {
  lanes_[0]->Log(BeginEntry(EntryKind::kDead, worker, 0));
  lost_.erase(worker);
  workers_.Remove(worker);
  for (const auto& [id, session] : lanes_[0]->sessions()) {
    if (session.client != worker) continue;
    lanes_[0]->FindSession(id)->dead = true;
    if (awaiting_markers_ && must_send_marker_.contains(id) && session.settled != checkpoint_) {
      AbortCheckpoint(checkpoint_,
                      Aborted(fmt::format("worker {} died before its marker came", worker)));
    }
  }
}

void ServerCore::ReportDead(int worker) {
  Lane::Guard guard(*lanes_[0]);
  if (is_leader()) RemoveWorker(worker);
}

bool ServerCore::Tick() {
  Lane::Guard guard(*lanes_[0]);
  const TimePoint now = options_.clock->Now();
  std::vector<int> dead;
  for (const auto& [worker, since] : lost_) {
    if (now - since >= options_.client_grace) dead.push_back(worker);
  }
  for (const int worker : dead) {
    LogWarning("server {}: worker {} has been away for {}: it no longer counts", options_.index,
               worker, FormatDuration(options_.client_grace));
    RemoveWorker(worker);
  }
  if (checkpoint_ >= 0 && now - checkpoint_began_ >= options_.checkpoint_timeout) {
    LogWarning(
        "checkpoint {} is given up after {}{}", checkpoint_,
        FormatDuration(options_.checkpoint_timeout),
        awaiting_markers_ ? ": " + Waiting("has not sent its marker", WorkersWithoutMarker()) : "");
    AbortCheckpoint(checkpoint_,
                    DeadlineExceeded(fmt::format("server 0 gave the checkpoint up after {}",
                                                 FormatDuration(options_.checkpoint_timeout))));
  }
  return !lost_.empty() || checkpoint_ >= 0;
}

}  // namespace shoal::ps
