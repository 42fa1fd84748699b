#include "ps/checkpoint/checkpoint_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/fault_injection.h"
#include "base/json.h"
#include "base/log.h"
#include "ps/server/shard_service.h"
#include "ps/server/worker_service.h"

namespace shoal::ps {
namespace {

constexpr uint32_t kMaxSessions = 1u << 20;

}  // namespace

CheckpointService::CheckpointService(ServerContext* context, BlobStore* blobs,
                                     WorkerService* workers, ShardService* shards)
    : context_(context),
      blobs_(blobs),
      workers_(workers),
      shards_(shards),
      ids_(context->options.checkpoint_dir),
      writer_(context, blobs, &cut_progress_),
      thread_(context) {}

Status CheckpointService::HandleStart(ControlRequest* request) {
  if (context_->options.checkpoint_dir.empty()) {
    return FailedPrecondition("this server was started without a checkpoint directory");
  }
  const uint64_t session = request->from.session;
  Withdraw(session);  // it missed the first answer
  if (current_ >= 0 && driver_ == session) Abort(current_, Aborted("its driver asked anew"));
  if (current_ >= 0 && request->head.argument != kStartWaits) {
    return FailedPrecondition(fmt::format("checkpoint {} is being taken", current_));
  }
  waiting_.push_back({session, std::move(request->answer)});
  if (current_ < 0) StartNext();
  return Status::Ok();
}

// The first request that waits drives the next checkpoint, whose commit answers the others too.
void CheckpointService::StartNext() {
  waiting_.insert(waiting_.end(), std::make_move_iterator(joined_.begin()),
                  std::make_move_iterator(joined_.end()));
  joined_.clear();
  while (current_ < 0 && !waiting_.empty()) {
    const Start first = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    const Status begun = Begin(first);
    if (!begun.ok()) first.answer(begun, {});
  }
  if (current_ >= 0) joined_.swap(waiting_);
}

void CheckpointService::Withdraw(uint64_t session) {
  const auto from = [session](const Start& start) { return start.session == session; };
  std::erase_if(waiting_, from);
  std::erase_if(joined_, from);
}

// Answers with the id and the sessions whose markers make the cut.
Status CheckpointService::Begin(const Start& start) {
  const auto& root = context_->options.checkpoint_dir;
  TRY_ASSIGN(const int64_t id, ids_.NextId(restored_));
  TRY(MakeDirectories(CheckpointPath(root, id), 0700));
  current_ = id;
  began_ = context_->options.clock->Now();
  driver_ = start.session;
  awaiting_markers_ = true;
  must_send_marker_.clear();
  marker_progress_.clear();

  std::string reply;
  ByteWriter writer(&reply);
  writer.Put(id);
  for (const auto& [session_id, session] : context_->first_lane().sessions()) {
    if (session.client < 0 || session.left || session.dead) continue;
    must_send_marker_.insert(session_id);
    writer.Put(session_id);
    writer.Put(int32_t{session.client});
  }
  start.answer(Status::Ok(), reply);
  return Status::Ok();
}

// Sent to every lane of every server; answered when the lane is frozen.
Status CheckpointService::HandleBegin(ControlRequest* request) {
  ByteReader reader(request->body);
  uint32_t count = 0;
  TRY(reader.Get(&count));
  if (count > kMaxSessions) return InvalidArgument("a checkpoint names too many sessions");
  std::set<uint64_t> required;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t session = 0;
    TRY(reader.Get(&session));
    required.insert(session);
  }
  const auto id = static_cast<int64_t>(request->head.argument);
  const bool leader = context_->is_leader() && request->from.lane == 0;
  if (leader && id != current_) {
    return Aborted(fmt::format("checkpoint {} is not being taken here", id));
  }
  Answer answer = std::move(request->answer);
  if (leader) {
    RequestMarkers(required, id);
    answer = [this, id, answer = std::move(answer)](const Status& status, std::string_view body) {
      OnFrozen(id, status);
      answer(status, body);
    };
  }
  context_->lane(request->from.lane)
      .BeginCheckpoint(id, std::move(required), leader, std::move(answer));
  return Status::Ok();
}

// Answered when this server's file is durable.
Status CheckpointService::HandleWrite(ControlRequest* request) {
  if (context_->options.checkpoint_dir.empty()) {
    return FailedPrecondition(fmt::format("server {} was started without a checkpoint directory",
                                          context_->options.index));
  }
  const auto id = static_cast<int64_t>(request->head.argument);
  return thread_.Run([this, id] { return Write(id); }, std::move(request->answer));
}

// Sent to server 0 with the manifest; answered when the checkpoint is committed.
Status CheckpointService::HandleCommit(ControlRequest* request) {
  TRY_ASSIGN(Manifest manifest, DecodeManifest(request->body));
  if (manifest.checkpoint != current_) {
    return Aborted(fmt::format("checkpoint {} is not being taken here", manifest.checkpoint));
  }
  for (const auto& [worker, bytes] : cut_progress_) manifest.workers.push_back(worker);
  return thread_.Run([this, manifest = std::move(manifest)] { return Commit(manifest); },
                     std::move(request->answer));
}

// Answered once nothing of the checkpoint is left, with the workers whose markers were missing.
Status CheckpointService::HandleAbort(ControlRequest* request) {
  const auto id = static_cast<int64_t>(request->head.argument);
  if (id < 0) {
    Withdraw(request->from.session);
    request->answer(Status::Ok(), {});
    return Status::Ok();
  }
  std::string late;
  if (context_->is_leader() && id == current_ && awaiting_markers_) {
    late = DescribeWorkers("has not sent its marker", WorkersWithoutMarker());
  }
  Abort(id, Aborted("it was given up"));
  if (current_ < 0) StartNext();
  thread_.WhenIdle([answer = std::move(request->answer), late] { answer(Status::Ok(), late); });
  return Status::Ok();
}

Status CheckpointService::HandleUnderWay(ControlRequest* request) {
  std::string reply;
  ByteWriter(&reply).Put(current_);
  request->answer(Status::Ok(), reply);
  return Status::Ok();
}

Status CheckpointService::AdmitWorker(const Hello& hello) {
  if (!awaiting_markers_ || context_->first_lane().FindSession(hello.session) != nullptr) {
    return Status::Ok();
  }
  if (!MustSendMarker(hello.client)) {
    return Unavailable("a checkpoint is being cut: new workers have to wait for a moment");
  }
  // The worker's earlier session is dead, and its marker may never reach every server.
  Abort(current_, Aborted(fmt::format("worker {} was started again before all "
                                      "servers had its marker",
                                      hello.client)));
  return Status::Ok();
}

// The request for its marker may have been lost with its last connection.
void CheckpointService::OnWelcomed(uint64_t session) {
  if (awaiting_markers_ && must_send_marker_.contains(session)) RequestMarkers({session}, current_);
}

void CheckpointService::OnConnectionLost(uint64_t session) {
  Withdraw(session);
  if (current_ < 0 || session != driver_) return;
  Abort(current_, Aborted("the client that drove the checkpoint is gone"));
  StartNext();
}

void CheckpointService::OnWorkerRemoved(int worker) {
  for (const auto& [id, session] : context_->first_lane().sessions()) {
    if (session.client != worker) continue;
    if (!awaiting_markers_ || !must_send_marker_.contains(id) || session.settled == current_) {
      continue;
    }
    Abort(current_, Aborted(fmt::format("worker {} died before its marker came", worker)));
  }
}

bool CheckpointService::Tick(TimePoint now) {
  const Duration timeout = context_->options.checkpoint_timeout;
  if (current_ >= 0 && now - began_ >= timeout) {
    LogWarning("checkpoint {} is given up after {}{}", current_, FormatDuration(timeout),
               awaiting_markers_
                   ? ": " + DescribeWorkers("has not sent its marker", WorkersWithoutMarker())
                   : "");
    Abort(current_, DeadlineExceeded(fmt::format("server 0 gave the checkpoint up after {}",
                                                 FormatDuration(timeout))));
  }
  // Not in Abort: its callers may be about to change the set of workers that take part.
  if (current_ < 0) StartNext();
  return current_ >= 0;
}

bool CheckpointService::MustSendMarker(int worker) const {
  return std::any_of(must_send_marker_.begin(), must_send_marker_.end(), [&](uint64_t id) {
    const Session* session = context_->first_lane().FindSession(id);
    return session != nullptr && session->client == worker;
  });
}

// By what has come to lane 0 of the leader.
std::vector<int> CheckpointService::WorkersWithoutMarker() const {
  std::vector<int> workers;
  for (const uint64_t id : must_send_marker_) {
    const Session* session = context_->first_lane().FindSession(id);
    if (session != nullptr && session->settled != current_ && !session->left)
      workers.push_back(session->client);
  }
  std::sort(workers.begin(), workers.end());
  return workers;
}

void CheckpointService::RequestMarkers(const std::set<uint64_t>& sessions, int64_t id) {
  Lane& lane = context_->first_lane();
  for (const uint64_t session_id : sessions) {
    const Session* session = lane.FindSession(session_id);
    auto peer = session == nullptr ? nullptr : session->peer.lock();
    if (peer == nullptr) continue;
    FrameHeader head;
    head.type = FrameType::kMarkerRequest;
    head.id = static_cast<uint64_t>(id);
    peer->Reply(head, {});
    lane.QueueFlush(std::move(peer));
  }
}

void CheckpointService::OnFrozen(int64_t id, const Status& status) {
  if (id != current_) return;
  awaiting_markers_ = false;
  if (!status.ok()) return;
  cut_progress_ = workers_->progress();
  for (const auto& [worker, bytes] : marker_progress_) cut_progress_[worker] = bytes;
}

void CheckpointService::Abort(int64_t id, const Status& why) {
  Lane& first = context_->first_lane();
  first.EndCheckpoint(id, why);
  for (uint32_t lane = 1; lane < context_->lane_count(); ++lane) {
    Lane::Guard guard(context_->lane(lane), first.to_flush());
    context_->lane(lane).EndCheckpoint(id, why);
  }
  if (!context_->is_leader() || current_ != id) return;
  current_ = -1;
  awaiting_markers_ = false;
  must_send_marker_.clear();
  // Not while a file is written into the directory that is to be removed.
  thread_.WhenIdle([this, id] { RemoveUncommitted(context_->options.checkpoint_dir, id); });
}

Result<std::string> CheckpointService::Write(int64_t id) {
  const Clock& clock = *context_->options.clock;
  const TimePoint begin = clock.Now();
  const auto file = writer_.Write(id, shards_->owned_version());
  const TimePoint end = clock.Now();
  Lane::Guard guard(context_->first_lane());
  if (!file.ok()) {
    ++metrics_.failed;
    return file.status();
  }
  ++metrics_.written;
  metrics_.last = id;
  metrics_.seconds = std::chrono::duration<double>(end - begin).count();
  metrics_.bytes = file->bytes;
  metrics_.continues = file->base >= 0;
  written_at_ = end;
  json::object reply = {{"name", file->name}, {"bytes", file->bytes}, {"crc32c", file->crc}};
  if (file->base >= 0) reply["base"] = file->base;
  return ToText(reply);
}

Result<std::string> CheckpointService::Commit(const Manifest& manifest) {
  const ServerOptions& options = context_->options;
  TRY(FaultPoint("ps.checkpoint.commit"));
  TRY(CommitManifest(options.checkpoint_dir, manifest, {options.keep_checkpoints, damaged_}));
  Lane::Guard guard(context_->first_lane());
  committed_ = manifest.checkpoint;
  std::string reply;
  ByteWriter writer(&reply);
  for (const int worker : manifest.workers) writer.Put(int32_t{worker});
  if (current_ == manifest.checkpoint) {
    current_ = -1;
    AnswerJoined(manifest, reply);
    StartNext();
  }
  return reply;
}

void CheckpointService::AnswerJoined(const Manifest& manifest, std::string_view workers) {
  uint64_t bytes = 0;
  for (const CheckpointFile& file : manifest.files) bytes += file.bytes;
  std::string reply;
  ByteWriter writer(&reply);
  writer.Put(~manifest.checkpoint);
  writer.Put(bytes);
  reply.append(workers);
  for (const Start& start : std::exchange(joined_, {})) start.answer(Status::Ok(), reply);
}

void CheckpointService::SetReplicated(int64_t restored, int64_t last_id) {
  restored_ = restored;
  ids_.SetLast(last_id);
}

CheckpointMetrics CheckpointService::metrics() const {
  CheckpointMetrics all = metrics_;
  all.under_way = current_ >= 0;
  all.waiting = waiting_.size();
  if (written_at_ != TimePoint{}) {
    const Duration age = context_->options.clock->Now() - written_at_;
    all.age_seconds = std::chrono::duration<double>(age).count();
  }
  return all;
}

}  // namespace shoal::ps
