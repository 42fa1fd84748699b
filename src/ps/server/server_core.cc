#include "ps/server/server_core.h"

#include <fmt/format.h>

#include <bit>
#include <new>

#include "base/log.h"
#include "ps/checkpoint/restore_point.h"
#include "ps/replication/replica_host.h"
#include "ps/server/shard_connection.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

constexpr int kMaxWorkers = 1 << 20;

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

// The fields that a welcome to a client and to a server have in common.
Welcome MakeWelcome(const ServerContext& context) {
  Welcome welcome;
  welcome.instance = context.instance;
  welcome.servers = context.options.initial_servers;
  welcome.lanes = context.lane_count();
  welcome.shards = context.partition.shards();
  return welcome;
}

Status CreateTable(Lane* lane, ControlRequest* request) {
  TableSpec spec;
  ByteReader reader(request->body);
  TRY(DecodeSpec(&reader, &spec));
  TRY(lane->CreateTable(spec));
  request->answer(Status::Ok(), {});
  return Status::Ok();
}

Status Describe(const Lane& lane, ControlRequest* request) {
  std::string report;
  EncodeReport(lane.Describe(), &report);
  if (report.size() > kMaxPayload) return ResourceExhausted("too many tables to describe");
  request->answer(Status::Ok(), report);
  return Status::Ok();
}

}  // namespace

ServerCore::ServerCore(ServerOptions options)
    : context_(std::move(options)),
      blobs_(context_.options),
      workers_(&context_),
      shards_(&context_, &blobs_.store()),
      checkpoints_(&context_, &blobs_.store(), &workers_, &shards_),
      replicator_(&context_, services()),
      backup_(&context_, services(), this) {}

Result<std::shared_ptr<ServerCore>> ServerCore::Make(ServerOptions options) {
  TRY(CheckOptions(options));
  if (options.initial_servers == 0) options.initial_servers = LookUpInitialServers(options);
  std::shared_ptr<ServerCore> core(new ServerCore(std::move(options)));
  TRY(core->shards_.Recover());
  TRY(core->checkpoints_.Open());
  if (core->options().replicas == 1 && core->options().incarnation > 0) {
    core->shards_.SetReadRows([checkpoints = &core->checkpoints_](const auto& shards) {
      return checkpoints->ReadRows(shards);
    });
  }
  core->lost_rows_ =
      CameBackEmpty(core->options(), core->shards_.Map(), core->checkpoints_.restored());
  return core;
}

std::shared_ptr<ServerCore> ServerCore::MakeBackup(ServerOptions options) {
  std::shared_ptr<ServerCore> core(new ServerCore(std::move(options)));
  core->context_.role = ServerRole::kBackup;
  return core;
}

ServerCore::~ServerCore() { Stop(); }

void ServerCore::Stop() {
  context_.Stop();
  checkpoints_.Stop();
  shards_.Stop();
  DropClients();
}

void ServerCore::DropClients() {
  const Status why = context_.StoppedStatus();
  for (auto& lane : context_.lanes) {
    Lane::Guard guard(*lane);
    for (const auto& [id, session] : lane->sessions()) {
      if (auto peer = session.peer.lock()) {
        peer->CloseAfterFlush(why);
        lane->QueueFlush(std::move(peer));
      }
    }
    if (auto peer = lane->primary_connection.lock()) {
      peer->CloseAfterFlush(why);
      lane->QueueFlush(std::move(peer));
    }
  }
}

// --- Connections ---

Result<std::shared_ptr<ServerCore>> ServerCore::Route(const Hello& hello) {
  const auto host = host_.lock();
  if (host != nullptr) return host->Route(hello);
  if (hello.kind != HelloKind::kCopy) return std::shared_ptr<ServerCore>();
  return FailedPrecondition(
      fmt::format("server {} keeps no replicas: start all servers with the same number of copies",
                  options().index));
}

Result<Welcome> ServerCore::Join(const Hello& hello,
                                 const std::shared_ptr<ServerConnection>& peer) {
  if (hello.kind != HelloKind::kClient) return JoinServer(hello, peer);
  if (hello.lane >= lanes() || hello.session == 0 || hello.first_seq == 0 || hello.client < -1 ||
      hello.client > kMaxWorkers) {
    return InvalidArgument(fmt::format("a client said hello as worker {} to lane {} of {}",
                                       hello.client, hello.lane, lanes()));
  }
  Lane& lane = context_.lane(hello.lane);
  Lane::Guard guard(lane);
  if (stopped()) return context_.StoppedStatus();
  if (!context_.serves_clients() || shards_.refuses_clients()) {
    return Unavailable(fmt::format("server {} is not served here", options().index));
  }
  const bool counts = context_.is_leader() && hello.lane == 0 && hello.client >= 0;
  if (counts) TRY(checkpoints_.AdmitWorker(hello));
  lane.ForgetObservers(options().clock->Now());
  TRY_ASSIGN(Session * session, lane.Join(hello, peer));
  if (counts) workers_.Join(hello);
  if (lane.log.on()) {
    std::string entry = BeginEntry(EntryKind::kJoin, hello.client, hello.session);
    ByteWriter writer(&entry);
    writer.Put(hello.first_seq);
    writer.Put(hello.clock);
    lane.Log(std::move(entry));
  }
  Welcome welcome = MakeWelcome(context_);
  welcome.server = options().index;
  welcome.ownership = shards_.Map().version();
  welcome.restored_checkpoint = checkpoints_.restored();
  welcome.lost_rows = lost_rows_;
  welcome.last_seq = session->last_seq;
  return welcome;
}

Result<Welcome> ServerCore::JoinServer(const Hello& hello,
                                       const std::shared_ptr<ServerConnection>& peer) {
  Welcome welcome = MakeWelcome(context_);
  welcome.server = hello.server;
  welcome.ownership = static_cast<uint64_t>(options().incarnation);
  if (hello.kind == HelloKind::kRecoveryLookup) {
    if (options().replicas == 1) return welcome;  // it asks for the shards alone
    const auto host = host_.lock();
    if (host == nullptr) return Unavailable("the server stops");
    welcome.last_seq = host->AnswerRecoveryLookup(hello) ? 1 : 0;
    return welcome;
  }
  if (hello.lane >= lanes()) return InvalidArgument("a replica of a lane that does not exist");
  if (hello.kind == HelloKind::kMove) {
    if (context_.serves_clients()) return welcome;
    return Unavailable(fmt::format("server {} is not served here", hello.server));
  }
  TRY_ASSIGN(welcome.last_seq, backup_.Connect(hello, peer));
  return welcome;
}

void ServerCore::OnWelcomed(const Hello& hello) {
  if (!context_.is_leader() || hello.lane != 0) return;
  Lane::Guard guard(context_.first_lane());
  checkpoints_.OnWelcomed(hello.session);
}

void ServerCore::OnConnectionLost(const Hello& hello, const ServerConnection* peer) {
  if (hello.lane >= lanes() || hello.kind != HelloKind::kClient) return;
  Lane& lane = context_.lane(hello.lane);
  Lane::Guard guard(lane);
  Session* session = lane.FindSession(hello.session);
  if (session == nullptr || stopped()) return;
  const auto present = session->peer.lock();
  if (present != nullptr && present.get() != peer) return;  // it has connected again
  session->key_cache.Clear();
  if (hello.lane != 0) return;
  blobs_.store().ForgetUploadsOf(hello.session);
  lane.Log(BeginEntry(EntryKind::kLost, hello.client, hello.session));
  if (!context_.is_leader()) return;
  checkpoints_.OnConnectionLost(hello.session);
  if (hello.client >= 0 && !session->left) workers_.OnConnectionLost(hello.client);
}

size_t ServerCore::ConnectedWorkers() {
  size_t connected = 0;
  for (auto& lane : context_.lanes) {
    Lane::Guard guard(*lane);
    for (const auto& [id, session] : lane->sessions()) {
      connected += session.client >= 0 && !session.left && !session.peer.expired();
    }
  }
  return connected;
}

// --- Requests ---

Status ServerCore::HandleMarker(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                                const FrameHeader& head, std::string_view body) {
  Lane& lane = context_.lane(from.lane);
  Session* session = lane.FindSession(from.session);
  if (session == nullptr) return FailedPrecondition("the connection's session has been replaced");
  if (body.size() > kMaxProgressBytes) return InvalidArgument("a marker's progress is too long");
  // Before the marker itself: it may be the last one that the cut waits for.
  if (context_.is_leader() && from.lane == 0 && head.id > session->last_seq && from.client >= 0 &&
      !body.empty()) {
    workers_.SetProgress(from.client, body);
    checkpoints_.SetMarkerProgress(from.client, body);
  }
  TRY(head.type == FrameType::kMarker ? lane.Marker(session, head) : lane.Settled(session, head));
  LogControl(&lane, from, head, body);
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
    return HandleServerFrame(from, peer, head, body);
  }
  if (head.type == FrameType::kMarker || head.type == FrameType::kSettled) {
    return HandleMarker(from, peer, head, body);
  }
  Lane& lane = context_.lane(from.lane);
  Session* session = lane.FindSession(from.session);
  if (session == nullptr) return FailedPrecondition("the connection's session has been replaced");
  if (head.type == FrameType::kProgress) {
    if (body.size() > kMaxProgressBytes) return InvalidArgument("a progress is too long");
    if (context_.is_leader() && from.lane == 0 && from.client >= 0) {
      workers_.SetProgress(from.client, body);
    }
    LogControl(&lane, from, head, body);
    return Status::Ok();
  }
  ControlRequest request{from, session, head, body, MakeAnswer(peer, head.id, &lane)};
  const Answer answer = request.answer;
  LogControl(&lane, from, head, body);
  try {
    const Status status = Handle(&request);
    if (!status.ok()) answer(status, {});
  } catch (const std::bad_alloc&) {
    answer(ResourceExhausted(fmt::format("server {} is out of memory", options().index)), {});
  }
  return Status::Ok();
}

Status ServerCore::HandleServerFrame(const Hello& from,
                                     const std::shared_ptr<ServerConnection>& peer,
                                     const FrameHeader& head, std::string_view body) {
  if (from.kind == HelloKind::kMove || from.kind == HelloKind::kRecoveryLookup) {
    return HandleMoveFrame(from, peer, head, body);
  }
  if (head.type != FrameType::kReplicate || from.kind != HelloKind::kCopy) {
    return InvalidArgument("a primary's connection carries log entries only");
  }
  return backup_.OnFrame(from, peer, head, body);
}

Status ServerCore::HandleMoveFrame(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                                   const FrameHeader& head, std::string_view body) {
  Lane& lane = context_.lane(from.lane);
  const Answer answer = MakeAnswer(peer, head.id, &lane);
  Status status;
  if (head.type == FrameType::kShards && from.lane == 0) {
    ControlRequest request{from, nullptr, head, body, answer};
    status = shards_.HandleShards(&request);
    if (!status.ok()) answer(status, {});
    return Status::Ok();
  }
  if (head.type == FrameType::kRestorePoint && from.lane == 0) {
    const bool in_use = !lane.Describe().tables.empty();
    answer(Status::Ok(), EncodeRestorePoint(checkpoints_.restore_point(in_use)));
    return Status::Ok();
  }
  if (from.kind != HelloKind::kMove)
    return InvalidArgument("a recovery lookup may only ask for shards and the restore point");
  try {
    status = shards_.ApplyMoveFrame(from, head, body);
  } catch (const std::bad_alloc&) {
    status = ResourceExhausted(fmt::format("server {} has no memory for a shard", options().index));
  }
  answer(status, {});
  return Status::Ok();
}

Status ServerCore::Handle(ControlRequest* request) {
  switch (request->head.type) {
    case FrameType::kCreateTable:
      return CreateTable(&lane(request->from.lane), request);
    case FrameType::kDescribe:
      return Describe(lane(request->from.lane), request);
    case FrameType::kLeave:
      HandleLeave(request);
      return Status::Ok();
    case FrameType::kShardBytes:
      return shards_.HandleShardBytes(request);
    case FrameType::kCheckpointBegin:
      return checkpoints_.HandleBegin(request);
    default:
      break;
  }
  if (request->from.lane != 0) return Unimplemented("this request belongs to the server's lane 0");
  return HandleFirstLane(request);
}

Status ServerCore::HandleFirstLane(ControlRequest* request) {
  switch (request->head.type) {
    case FrameType::kPutBlob:
    case FrameType::kGetBlob:
    case FrameType::kListBlobs:
    case FrameType::kDeleteBlob:
      return blobs_.Handle(request);
    case FrameType::kCheckpointWrite:
      return checkpoints_.HandleWrite(request);
    case FrameType::kCheckpointAbort:
      return checkpoints_.HandleAbort(request);
    case FrameType::kShards:
      return shards_.HandleShards(request);
    case FrameType::kMoveShard:
      return shards_.HandleMoveShard(request);
    case FrameType::kTakesRows:
      return shards_.HandleTakesRows(request);
    default:
      return HandleLeader(request);
  }
}

Status ServerCore::HandleLeader(ControlRequest* request) {
  if (!context_.is_leader()) return Unimplemented("this request belongs to server 0");
  switch (request->head.type) {
    case FrameType::kClock:
      return workers_.HandleClock(request);
    case FrameType::kBarrier:
      return workers_.HandleBarrier(request);
    case FrameType::kGetProgress:
      return workers_.HandleGetProgress(request);
    case FrameType::kReportDead:
      RemoveWorker(static_cast<int>(request->head.argument & 0x7fffffff));
      request->answer(Status::Ok(), {});
      return Status::Ok();
    case FrameType::kCutting:
      return checkpoints_.HandleUnderWay(request);
    case FrameType::kCheckpointStart:
      return checkpoints_.HandleStart(request);
    case FrameType::kCheckpointCommit:
      return checkpoints_.HandleCommit(request);
    default:
      return Unimplemented("a server does not answer this kind of frame");
  }
}

void ServerCore::HandleLeave(ControlRequest* request) {
  const Hello& from = request->from;
  lane(from.lane).Leave(request->session);
  if (context_.is_leader() && from.lane == 0 && from.client >= 0) {
    if (!request->body.empty() && request->body.size() <= kMaxProgressBytes) {
      workers_.SetProgress(from.client, request->body);
    }
    workers_.Remove(from.client);
  }
  request->answer(Status::Ok(), {});
}

// --- Workers and replicas that are gone ---

void ServerCore::RemoveWorker(int worker) {
  Lane& lane = context_.first_lane();
  lane.Log(BeginEntry(EntryKind::kDead, worker, 0));
  workers_.Remove(worker);
  for (const auto& [id, session] : lane.sessions()) {
    if (session.client == worker) lane.FindSession(id)->dead = true;
  }
  checkpoints_.OnWorkerRemoved(worker);
}

void ServerCore::ReportDead(int worker) {
  Lane::Guard guard(context_.first_lane());
  if (context_.is_leader()) RemoveWorker(worker);
}

bool ServerCore::Tick() {
  Lane::Guard guard(context_.first_lane());
  const TimePoint now = options().clock->Now();
  for (const int worker : workers_.Expired(now)) {
    LogWarning("server {}: worker {} has been away for {}: it no longer counts", options().index,
               worker, FormatDuration(options().client_grace));
    RemoveWorker(worker);
  }
  const bool checkpoint = checkpoints_.Tick(now);
  return workers_.has_disconnected() || checkpoint;
}

void ServerCore::TakeOver() {
  context_.role = ServerRole::kStandby;
  backup_.TakeOver();
  context_.role = ServerRole::kPrimary;
  // The primary may have decided a move that only its backup knows of.
  shards_.Announce();
}

}  // namespace shoal::ps
