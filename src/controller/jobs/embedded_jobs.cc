#include "controller/jobs/embedded_jobs.h"

#include <filesystem>
#include <utility>

#include "base/access/directory_owner.h"
#include "controller/jobs/job_json.h"
#include "controller/jobs/scale_request.h"
#include "controller/jobs/session.h"
#include "controller/jobs/stop_request.h"
#include "controller/recovery/prune.h"
#include "controller/series/series_files.h"
#include "controller/threads/loop_task_group.h"
#include "job/execution/job_dir.h"

namespace shoal::controller {
namespace {

constexpr int kSearchPage = 1000;

Status EndedAlready(const JobRecord& job) {
  return FailedPrecondition("job " + job.id + " has ended: " + std::string(NameOf(job.state)) +
                            (job.reason.empty() ? "" : ": " + job.reason));
}

// A run of this process: shows other processes that this one is not frozen.
class OwnRun final : public JobRun {
 public:
  OwnRun(net::Loop* loop, const Session* session) : loop_(loop), session_(session) { Refresh(); }
  ~OwnRun() override { loop_->Cancel(timer_); }
  void SetRun(std::unique_ptr<JobRun> run) { run_ = std::move(run); }
  void Drain(const std::string& reason) override { run_->Drain(reason); }
  void Kill(const std::string& reason) override { run_->Kill(reason); }
  void Suspend(const std::string& reason) override { run_->Suspend(reason); }
  void Scale(const std::string& role, int replicas, const std::string& reason,
             std::function<void(const Status&)> done) override {
    run_->Scale(role, replicas, reason, std::move(done));
  }

 private:
  void Refresh() {
    RefreshLivenessLock(session_->home().root(), session_->self());
    timer_ = loop_->After(kLivenessRefreshInterval, [this] { Refresh(); });
  }

  net::Loop* const loop_;
  const Session* const session_;
  std::unique_ptr<JobRun> run_;
  net::Loop::Id timer_ = 0;
};

// Follows log files until the job ends.
class FileFollowing final : public Jobs::Following {
 public:
  FileFollowing(net::Loop* loop, Store* store, std::string id,
                std::function<void(const Status&)> on_end)
      : loop_(loop), store_(store), id_(std::move(id)), on_end_(std::move(on_end)), tasks_(loop) {}

  Status Begin(const LogSelection& selection, std::map<LogKey, int64_t> from,
               LogStore::OnBytes on_bytes, const StateHome& home) {
    TRY_ASSIGN(
        follower_,
        LogStore(home.job_dir(id_)).Follow(loop_, selection, std::move(from), std::move(on_bytes)));
    TRY_ASSIGN(watch_, store_->Watch(
                           [this, poster = tasks_.poster()] { poster.Post([this] { Look(); }); }));
    tasks_.Post([this] { Look(); });
    return Status::Ok();
  }

 private:
  void Look() {
    const Result<JobRecord> job = store_->GetJob(id_);
    if (ended_ || (job.ok() && !job::IsFinal(job->state))) return;
    ended_ = true;
    follower_->Drain();
    on_end_(Status::Ok());
  }

  net::Loop* const loop_;
  Store* const store_;
  const std::string id_;
  const std::function<void(const Status&)> on_end_;
  bool ended_ = false;
  LoopTaskGroup tasks_;
  std::unique_ptr<LogStore::Follower> follower_;
  std::unique_ptr<Store::Watcher> watch_;
};

class EmbeddedJobs final : public Jobs {
 public:
  EmbeddedJobs(EmbeddedJobsOptions options, std::unique_ptr<Session> session)
      : options_(std::move(options)), session_(std::move(session)) {}

  Result<JobView> Find(const std::string& prefix) override {
    return View(session_->store().FindJob(prefix));
  }
  Result<std::vector<JobView>> List(const JobQuery& query) override;
  Result<JobDetails> Describe(const std::string& id) override;
  Result<std::string> Submit(const NewRun& /*run*/) override {
    return FailedPrecondition(
        "a job without a server needs a process that runs it: use `shoal run`, or name a server "
        "with --server");
  }
  Result<std::unique_ptr<JobRun>> Run(
      net::Loop* loop, const NewRun& run,
      const std::function<void(const std::string& id)>& on_submitted, Observer observer) override;
  Result<std::unique_ptr<JobRun>> RunResumed(net::Loop* loop, const std::string& id,
                                             Observer observer) override;
  Result<JobView> Resume(const std::string& id) override {
    return FailedPrecondition("job " + id + " needs a process that runs it: `shoal resume " + id +
                              "` without --detach");
  }
  Result<JobView> Stop(const std::string& id, StopMode mode, const std::string& reason) override;
  Result<JobView> Suspend(const std::string& id, const std::string& reason) override;
  Status Scale(const std::string& id, const std::string& role, int replicas) override;
  Duration TimeSuspended(const std::string& id) override { return session_->TimeSuspended(id); }

  Result<std::vector<LogInfo>> SelectLogs(const std::string& id,
                                          const LogSelection& selection) override {
    return Logs(id).Select(selection);
  }
  Result<std::string> ReadLog(const std::string& id, const LogKey& key, int64_t offset,
                              size_t limit) override {
    return Logs(id).Read(key, offset, limit);
  }
  Result<rendezvous::LogTimes> ReadLogTimes(const std::string& id, const LogKey& key,
                                            int64_t from) override {
    const FileAccessAs owner(Dir(id));
    return rendezvous::ReadLogTimes(job::JobDir(Dir(id)).logs(), key, from);
  }
  Status SearchLogs(const LogSearchRequest& request, const OnFoundLine& on_found) override;
  Result<int64_t> TailOffset(const std::string& id, const LogKey& key, int lines) override {
    return Logs(id).TailOffset(key, lines);
  }
  Result<std::unique_ptr<Following>> FollowLogs(net::Loop* loop, const std::string& id,
                                                const LogSelection& selection,
                                                std::map<LogKey, int64_t> from,
                                                LogStore::OnBytes on_bytes,
                                                std::function<void(const Status&)> on_end) override;

  Result<std::vector<OutputFile>> ListOutputs(const std::string& id) override {
    return controller::ListOutputs(Dir(id));
  }
  Status CopyOutputs(const std::string& id, const std::vector<OutputFile>& files,
                     const std::filesystem::path& directory) override {
    return controller::CopyOutputs(Dir(id), files, directory);
  }
  Result<std::vector<SeriesInfo>> ListSeries(const std::string& id) override {
    return controller::ListSeries(SeriesDir(Dir(id)));
  }
  Result<std::vector<SeriesBucket>> ReadSeries(const std::string& id, const std::string& name,
                                               const SeriesRange& range) override {
    return controller::ReadSeries(SeriesDir(Dir(id)), name, range);
  }
  Result<std::vector<std::string>> Prune(Duration age) override {
    return controller::Prune(&session_->store(), session_->home(), RealClock::Get()->Wall(), age);
  }
  Result<std::vector<std::string>> PruneUnreadable() override {
    return controller::PruneUnreadable(&session_->store(), session_->home(),
                                       RealClock::Get()->Wall());
  }

  Result<UsageTable> Usage(const UsageQuery& query) override {
    return ReadUsage(&session_->store(), query, RealClock::Get()->Wall());
  }

  // First in, first out: the stored reason says all.
  Result<WhyWaits> Why(const std::string& id) override {
    TRY_ASSIGN(const JobRecord job, session_->store().GetJob(id));
    return WhyWaits{job.state == JobState::kPending, job.reason, {}};
  }
  Result<std::unique_ptr<Secrets>> SecretsOf(const std::string& team) override {
    if (!team.empty())
      return InvalidArgument("got team " + team + ", but without a server there are no teams");
    return std::unique_ptr<Secrets>(std::make_unique<TeamSecrets>(&session_->secrets(), "", ""));
  }

  Result<std::unique_ptr<engine::Execution>> Exec(const std::string& id, const std::string& role,
                                                  int index,
                                                  const engine::ExecSpec& spec) override {
    TRY_ASSIGN(engine::Engine* const engine, EngineOf(id));
    return engine->Exec(id, role, index, spec);
  }
  Result<UniqueFd> DialTask(const std::string& id, const std::string& role, int index,
                            uint16_t port) override {
    TRY_ASSIGN(engine::Engine* const engine, EngineOf(id));
    return engine->DialTask(id, role, index, port);
  }

 private:
  std::filesystem::path Dir(const std::string& id) const { return session_->home().job_dir(id); }
  LogStore Logs(const std::string& id) const { return LogStore(Dir(id)); }
  JobView ViewOf(JobRecord record);
  Result<JobView> View(Result<JobRecord> record);
  Result<engine::Engine*> EngineOf(const std::string& id);
  Result<ControllerOptions> OptionsFor(const std::string& engine, std::filesystem::path work_dir);
  static Result<std::unique_ptr<JobRun>> StartOwn(std::unique_ptr<OwnRun> own, net::Loop* loop,
                                                  Controller controller, const std::string& id,
                                                  Observer observer);

  const EmbeddedJobsOptions options_;
  const std::unique_ptr<Session> session_;
};

// ---- Records ------------------------------------------------------------------------------------

JobView EmbeddedJobs::ViewOf(JobRecord record) {
  JobView view;
  view.unattended = session_->unattended(record.id);
  view.suspended = session_->TimeSuspended(record.id);
  view.directory = Dir(record.id).string();
  view.record = std::move(record);
  return view;
}

Result<JobView> EmbeddedJobs::View(Result<JobRecord> record) {
  TRY(record.status());
  return ViewOf(std::move(*record));
}

Result<std::vector<JobView>> EmbeddedJobs::List(const JobQuery& query) {
  TRY_ASSIGN(std::vector<JobRecord> records, session_->store().ListJobs(query));
  std::vector<JobView> views;
  for (JobRecord& record : records) views.push_back(ViewOf(std::move(record)));
  return views;
}

Result<JobDetails> EmbeddedJobs::Describe(const std::string& id) {
  JobDetails details;
  TRY_ASSIGN(details.view, View(session_->store().GetJob(id)));
  TRY_ASSIGN(details.tasks, session_->store().ListTasks(id));
  TRY_ASSIGN(details.events, session_->store().ReadEvents(id, 0, INT32_MAX));
  return details;
}

Result<engine::Engine*> EmbeddedJobs::EngineOf(const std::string& id) {
  TRY_ASSIGN(const JobRecord job, session_->store().GetJob(id));
  return session_->engine(job.engine);
}

// ---- Runs ---------------------------------------------------------------------------------------

Result<ControllerOptions> EmbeddedJobs::OptionsFor(const std::string& engine,
                                                   std::filesystem::path work_dir) {
  TRY(session_->HoldLivenessLock());
  ControllerOptions options;
  options.store = &session_->store();
  TRY_ASSIGN(options.engine, session_->engine(engine));
  options.engine_instance = engine;
  options.home = session_->home();
  options.program = options_.program;
  options.self = session_->self();
  options.secrets = &session_->secrets();
  std::error_code error;
  if (work_dir.empty()) work_dir = std::filesystem::current_path(error);
  options.work_dir = std::move(work_dir);
  return options;
}

Result<std::unique_ptr<JobRun>> EmbeddedJobs::StartOwn(std::unique_ptr<OwnRun> own, net::Loop* loop,
                                                       Controller controller, const std::string& id,
                                                       Observer observer) {
  TRY_ASSIGN(std::unique_ptr<JobRun> run, controller.Start(loop, id, std::move(observer)));
  own->SetRun(std::move(run));
  return std::unique_ptr<JobRun>(std::move(own));
}

Result<std::unique_ptr<JobRun>> EmbeddedJobs::Run(
    net::Loop* loop, const NewRun& run,
    const std::function<void(const std::string& id)>& on_submitted, Observer observer) {
  const std::string engine = run.engine.empty() ? kLocalEngine : run.engine;
  TRY_ASSIGN(ControllerOptions options, OptionsFor(engine, run.work_dir));
  const std::string kind = session_->engines().KindOf(engine);
  if (options_.validation) options.validation = options_.validation(run, kind);
  auto own = std::make_unique<OwnRun>(loop, session_.get());
  job::Job job = run.job;
  session_->engines().SetDefaults(engine, &job);
  if (!job.on_controller_loss) job.on_controller_loss = job::OnControllerLoss::kStop;
  Controller controller(std::move(options));
  TRY_ASSIGN(const std::string id, controller.Submit(job));
  on_submitted(id);
  return StartOwn(std::move(own), loop, controller, id, std::move(observer));
}

Result<std::unique_ptr<JobRun>> EmbeddedJobs::RunResumed(net::Loop* loop, const std::string& id,
                                                         Observer observer) {
  TRY_ASSIGN(const JobRecord job, session_->store().GetJob(id));
  TRY_ASSIGN(ControllerOptions options, OptionsFor(job.engine, ReadWorkDir(Dir(id))));
  auto own = std::make_unique<OwnRun>(loop, session_.get());
  Controller controller(std::move(options));
  TRY(controller.Resume(id));
  return StartOwn(std::move(own), loop, controller, id, std::move(observer));
}

// ---- Changes of jobs that any process runs ------------------------------------------------------

Result<JobView> EmbeddedJobs::Stop(const std::string& id, StopMode mode,
                                   const std::string& reason) {
  TRY_ASSIGN(JobRecord job, session_->store().GetJob(id));
  if (job::IsFinal(job.state)) return ViewOf(std::move(job));
  ContinueOwner(job);
  if (job.state == JobState::kPending) {
    const Status waiting = session_->MakeController().EndWaiting(id, reason);
    if (waiting.ok()) return View(session_->store().GetJob(id));
    if (waiting.code() != Code::kFailedPrecondition)
      return waiting;  // otherwise it has just started
    TRY_ASSIGN(job, session_->store().GetJob(id));
    if (job::IsFinal(job.state)) return ViewOf(std::move(job));
  }
  if (job.state != JobState::kSuspended) {
    const StopRequest request = mode == StopMode::kKill ? StopRequest::kKill : StopRequest::kDrain;
    TRY_ASSIGN(job, SendStopRequest(session_.get(), id, request, reason, options_.interrupts));
  }
  // An earlier command may have asked for it already.
  if (job.state == JobState::kSuspended) TRY(session_->MakeController().EndSuspended(id, reason));
  return View(session_->store().GetJob(id));
}

Result<JobView> EmbeddedJobs::Suspend(const std::string& id, const std::string& reason) {
  TRY_ASSIGN(JobRecord job, session_->store().GetJob(id));
  if (job.state == JobState::kSuspended) return ViewOf(std::move(job));
  if (job::IsFinal(job.state)) return EndedAlready(job);
  if (job.state == JobState::kPending) {
    const Status waiting = session_->MakeController().SuspendWaiting(id, reason);
    if (waiting.ok()) return View(session_->store().GetJob(id));
    if (waiting.code() != Code::kFailedPrecondition)
      return waiting;  // otherwise it has just started
  }
  return View(
      SendStopRequest(session_.get(), id, StopRequest::kSuspend, reason, options_.interrupts));
}

Status EmbeddedJobs::Scale(const std::string& id, const std::string& role, int replicas) {
  TRY_ASSIGN(const JobRecord job, session_->store().GetJob(id));
  if (job::IsFinal(job.state))
    return FailedPrecondition("job " + id + " has ended: " + std::string(NameOf(job.state)));
  if (job.state == JobState::kSuspended)
    return FailedPrecondition("job " + id + " is suspended; `shoal resume` it first");
  if (job.state == JobState::kPending) {
    const Status waiting = session_->MakeController().ScaleWaiting(id, role, replicas);
    TRY_ASSIGN(const JobRecord now, session_->store().GetJob(id));
    if (waiting.ok() || now.state == JobState::kPending) return waiting.With("job " + id);
  }
  TRY_ASSIGN(rendezvous::CoordinatorClientOptions options, session_->ObserverClientOptions(job));
  return SendScaleRequest(std::move(options), role, replicas).With("job " + id);
}

Status EmbeddedJobs::SearchLogs(const LogSearchRequest& request, const OnFoundLine& on_found) {
  TRY_ASSIGN(LineFilter filter, MakeLineFilter(request));
  const auto sources = [&](const std::string& cursor) -> Result<LogSources> {
    JobFilter wanted;
    if (!request.team.empty()) wanted.teams = {request.team};
    TRY_ASSIGN(const JobPage page, session_->store().ListPage(wanted, cursor, kSearchPage));
    LogSources found;
    for (const JobSummary& job : page.jobs) found.jobs.push_back({job.id, Dir(job.id)});
    found.next = page.next;
    return found;
  };
  LogSearch search(sources, std::move(filter), request.selection, request.times);
  int64_t left = request.limit;
  const auto found = [&](const FoundLine& line) { return on_found(line) && --left > 0; };
  return left > 0 ? search.Step(INT64_MAX, found).status() : Status::Ok();
}

Result<std::unique_ptr<Jobs::Following>> EmbeddedJobs::FollowLogs(
    net::Loop* loop, const std::string& id, const LogSelection& selection,
    std::map<LogKey, int64_t> from, LogStore::OnBytes on_bytes,
    std::function<void(const Status&)> on_end) {
  auto following = std::make_unique<FileFollowing>(loop, &session_->store(), id, std::move(on_end));
  TRY(following->Begin(selection, std::move(from), std::move(on_bytes), session_->home()));
  return std::unique_ptr<Following>(std::move(following));
}

}  // namespace

Result<std::unique_ptr<Jobs>> OpenEmbeddedJobs(EmbeddedJobsOptions options) {
  TRY_ASSIGN(std::unique_ptr<Session> session, Session::Open(options.engines));
  return std::unique_ptr<Jobs>(
      std::make_unique<EmbeddedJobs>(std::move(options), std::move(session)));
}

}  // namespace shoal::controller
