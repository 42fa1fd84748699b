#include "learn/task/parameter_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "learn/params/params.h"
#include "ps/client/admin.h"

namespace shoal::learn {
namespace {

constexpr auto kFirstCheckpoint = std::chrono::seconds(5);
constexpr auto kRetry = std::chrono::seconds(2);
constexpr auto kPollInterval = std::chrono::milliseconds(20);  // for a request to stop
constexpr auto kReportInterval = std::chrono::minutes(1);      // of a server's progress reports
constexpr auto kBalanceEvery = std::chrono::seconds(2);
constexpr auto kLeaveTimeout = std::chrono::hours(1);    // limits.stop_grace is the effective limit
constexpr auto kEnded = std::chrono::milliseconds(500);  // between checks for ended workers

ps::ServerOptions OptionsOf(const Task& task) {
  ps::ServerOptions options;
  options.poll_for = kBusyPollTime;
  options.index = task.role == "server" ? task.index : 0;
  options.servers = std::max(1, task.servers);
  options.workers = task.workers;
  options.token = task.token;
  options.shards = kShards;
  options.checkpoint_dir = task.checkpoint_dir;
  options.keep_checkpoints = task.checkpoint_keep;
  return options;
}

}  // namespace

struct CheckpointTimer::State {
  std::chrono::milliseconds every{0};
  ps::ClientOptions options;
  ps::Members* members = nullptr;
  Mutex mu;
  CondVar changed;
  bool stop GUARDED_BY(mu) = false;
  std::thread thread;

  // False when the timer has to stop.
  bool Sleep(std::chrono::milliseconds time) {
    MutexLock lock(mu);
    return !changed.wait_for(lock, time, [this]() REQUIRES(mu) { return stop; });
  }

  void TakeCheckpoints() {
    std::unique_ptr<ps::Admin> admin;
    auto wait = std::min<std::chrono::milliseconds>(every, kFirstCheckpoint);
    while (Sleep(wait)) {
      wait = std::min<std::chrono::milliseconds>(every, kRetry);
      if (admin == nullptr) {
        Result<std::unique_ptr<ps::Admin>> connected = ps::Admin::Connect(options, members);
        if (!connected.ok()) {
          LogWarning("checkpoint: {}", connected.status().message());
          continue;
        }
        admin = std::move(*connected);
      }
      const Result<ps::CheckpointInfo> taken = admin->Checkpoint();
      if (taken.ok()) {
        LogInfo("checkpoint {}: {} bytes", taken->id, taken->bytes);
        wait = every;
      } else {
        LogWarning("checkpoint: {}", taken.status().message());
        if (!taken.status().retryable()) admin.reset();
      }
    }
  }
};

CheckpointTimer::CheckpointTimer() : state_(std::make_unique<State>()) {}

std::unique_ptr<CheckpointTimer> CheckpointTimer::Start(const Task& task, ps::Members* members,
                                                        std::shared_ptr<ps::InProcessHub> hub) {
  if (task.checkpoint_every.count() <= 0 || task.checkpoint_dir.empty()) return nullptr;
  std::unique_ptr<CheckpointTimer> timer(new CheckpointTimer);
  timer->state_->every = task.checkpoint_every;
  timer->state_->options.index = ps::kObserver;
  timer->state_->options.token = task.token;
  timer->state_->options.hub = std::move(hub);
  // Workers that ended abnormally send no markers: the destructor does not wait for a checkpoint
  // with them.
  timer->state_->options.interrupted = [state = timer->state_.get()] {
    const MutexLock lock(state->mu);
    return state->stop;
  };
  timer->state_->members = members;
  timer->state_->thread = std::thread([state = timer->state_.get()] { state->TakeCheckpoints(); });
  return timer;
}

CheckpointTimer::~CheckpointTimer() {
  {
    const MutexLock lock(state_->mu);
    state_->stop = true;
  }
  state_->changed.notify_all();
  if (state_->thread.joinable()) state_->thread.join();
}

Result<std::unique_ptr<InProcessServer>> InProcessServer::Start(const Task& task) {
  auto server = std::make_unique<InProcessServer>();
  ps::ServerOptions options = OptionsOf(task);
  options.listen_host.clear();
  options.hub = server->hub_;
  options.inproc_name = "job";
  TRY_ASSIGN(server->server_, ps::Server::Start(std::move(options)));
  server->members_.view = {1, {server->server_->inproc_address()}, task.workers};
  server->timer_ = CheckpointTimer::Start(task, &server->members_, server->hub_);
  return server;
}

Status RunParameterServer(Task& task) {
  ps::ServerOptions options = OptionsOf(task);
  options.listen_host = task.host;
  options.port = task.port;
  options.replicas = task.server_copies;
  options.ucx = task.ucx;
  options.members = &task.members();
  options.incarnation = task.life;
  options.balance_every = kBalanceEvery;
  // The clients know the job by the number that it began with. Others need not know it: server 0
  // may have been lost before a new server could ask.
  if (task.server_copies == 1) options.initial_servers = task.initial_servers;
  // The only server left, started again: the rows of servers that have left, or were lost as they
  // left, are its own now.
  const bool alone = task.index == 0 && task.servers == 1 && options.initial_servers > 0;
  if (alone && task.life > 0) options.takeover_epoch = task.takeover_epoch();
  options.stopping = [&task] { return task.stop.load(); };
  TRY_ASSIGN(const std::unique_ptr<ps::Server> server, ps::Server::Start(std::move(options)));
  // With replicas it is known only later whether checkpoints are needed.
  if (task.server_copies == 1 && server->restored_checkpoint() >= 0)
    task.reporter().Event({{"restored_checkpoint", server->restored_checkpoint()}});
  std::unique_ptr<CheckpointTimer> timer;
  if (task.index == 0) timer = CheckpointTimer::Start(task, &task.members(), nullptr);
  // A restarted server must not wait for workers that have ended: they will not register again.
  std::vector<int> ended;
  TimePoint look{}, tell = RealClock::Get()->Now() + kReportInterval;
  for (; !task.stop.load(); std::this_thread::sleep_for(kPollInterval)) {
    const TimePoint time = RealClock::Get()->Now();
    if (time < look) continue;
    look = time + kEnded;
    if (time >= tell) {
      LogInfo("{}", ps::Describe(server->metrics()));
      tell = time + kReportInterval;
    }
    const std::vector<int> now = task.EndedWorkers();
    for (const int worker : now) {
      if (!std::binary_search(ended.begin(), ended.end(), worker)) server->ReportDead(worker);
    }
    ended = now;
  }
  timer.reset();
  // Asked to stop while workers run on: the role is scaled down, or an operator removes this
  // server; the other servers take over its rows.
  if (task.index == 0 || task.servers < 2 || !task.HasLiveWorkers()) return Status::Ok();
  const Status left = server->Leave(kLeaveTimeout);
  // A job that is ending needs no rows; in one that goes on this is a loss, not a good end.
  if (!left.ok() && task.HasLiveWorkers()) return left;
  if (!left.ok()) LogInfo("{}", left.message());
  return Status::Ok();
}

Result<WorkerClient> ConnectWorker(Task& task, ps::Consistency consistency,
                                   std::atomic<uint64_t>* restarted) {
  ps::ClientOptions options;
  options.poll_for = kBusyPollTime;
  options.index = task.index;
  options.token = task.token;
  options.consistency = consistency;
  // Failures are tolerated at the start too: a server may stop or restart at just that moment.
  options.connect_timeout = options.reconnect_timeout = std::chrono::seconds(120);
  options.on_server_restart = [restarted](int index, int64_t /*checkpoint*/) {
    restarted->fetch_or(uint64_t{1} << std::min(index, 63));
  };
  WorkerClient connected;
  ps::Members* members = &task.members();
  if (task.servers == 0) {
    TRY_ASSIGN(connected.server, InProcessServer::Start(task));
    options.hub = connected.server->hub();
    members = &connected.server->members();
  }
  options.ucx = task.ucx && task.servers > 0;
  TRY_ASSIGN(connected.client, ps::Client::Connect(std::move(options), members));
  return connected;
}

Status MissingOutputError(std::string_view what) {
  return InvalidArgument(fmt::format(
      "outputs.model: missing; expected the directory for the {}, such as outputs: {{model: {}}}",
      what, what));
}

Status ValidateRoles(const job::Job& job, std::string_view algorithm) {
  const job::Role* const worker = job.FindRole("worker");
  if (worker == nullptr) {
    return InvalidArgument(
        fmt::format("roles: there is no role worker; {} trains in it", algorithm));
  }
  if (job.FindRole("server") == nullptr && worker->replicas > 1) {
    return InvalidArgument(fmt::format(
        "roles: {} workers but no role server; add `server: {{replicas: 1, follows: worker}}`, or "
        "take one worker with more threads",
        worker->replicas));
  }
  if (worker->elastic()) {
    return InvalidArgument(fmt::format(
        "roles.worker: got from {} to {} tasks ('min' and 'max'), expected a fixed number: {} "
        "divides its data among the workers when it begins; leave out 'min' and 'max', or make the "
        "role server elastic",
        worker->least(), worker->most(), algorithm));
  }
  const auto copies = job.learn.find("server_copies");
  const job::Role* const server = job.FindRole("server");
  if (copies != job.learn.end() && copies->second.text != "1" &&
      (server == nullptr || server->replicas < 2)) {
    return InvalidArgument(
        fmt::format("{}got {}, expected 1 with fewer than 2 servers; add `server: {{replicas: 2, "
                    "follows: worker}}`",
                    FormatPlace(job.file, copies->second, "server_copies"), copies->second.text));
  }
  return Status::Ok();
}

}  // namespace shoal::learn
