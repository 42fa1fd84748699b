#include "api/client/remote_jobs.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <thread>
#include <utility>

#include "api/client/download_outputs.h"
#include "api/client/job_stream.h"
#include "api/client/remote_groups.h"
#include "api/client/remote_queues.h"
#include "api/client/remote_run.h"
#include "api/client/remote_secrets.h"
#include "api/client/remote_usage.h"
#include "api/client/search_logs.h"
#include "api/client/upload.h"
#include "api/rest/job_json.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "controller/files/stage_files.h"
#include "controller/files/state_home.h"
#include "controller/jobs/job_json.h"
#include "controller/jobs/series_json.h"
#include "job/file/write_yaml.h"
#include "net/byte_channel.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

using controller::JobDetails;
using controller::JobView;
using controller::LogInfo;
using controller::LogKey;
using controller::LogSelection;
using controller::OutputFile;

constexpr int kPage = 1000;
constexpr int kShownMatches = 5;

std::string JobTarget(const std::string& id, const std::string& rest = "") {
  return "/api/v1/jobs/" + net::PercentEncode(id) + rest;
}

Result<json::array> ItemsOf(const json::object& object) {
  const json::value* const items = object.if_contains("items");
  if (items == nullptr || !items->is_array())
    return DataLoss("the server's answer has no list of items");
  return items->get_array();
}

template <typename T, typename Parse>
Result<std::vector<T>> ParseItems(const json::object& object, Parse parse) {
  TRY_ASSIGN(const json::array items, ItemsOf(object));
  std::vector<T> parsed;
  for (const json::value& item : items) {
    if (!item.is_object()) return DataLoss("the server's list has an item that is no object");
    TRY_ASSIGN(T one, parse(item.get_object()));
    parsed.push_back(std::move(one));
  }
  return parsed;
}

JobView ViewOf(const controller::JobRecord& record) {
  JobView view;
  view.record = record;
  return view;
}

// The body of the request that submits one job, after its files have been uploaded.
Result<json::object> SubmitRequest(const ApiClient& client, const RemoteJobsOptions& options,
                                   const controller::NewRun& run) {
  json::object body{{"file", job::WriteYaml(run.job)}};
  if (!options.team.empty()) body["team"] = options.team;
  if (!run.engine.empty()) body["engine"] = run.engine;
  std::error_code error;
  const std::string here = run.work_dir.empty() ? fs::current_path(error).string() : run.work_dir;
  body["directory"] = here;
  if (run.job.files.empty()) return body;
  TRY_ASSIGN(const fs::path root, controller::FindStateHome());
  UploadOptions upload;
  upload.directory = run.job.files;
  upload.cache = controller::FileCachePath(controller::StateHome(root));
  upload.team = options.team;
  upload.on_note = options.on_note;
  TRY_ASSIGN(const std::string manifest, UploadFiles(client, upload));
  body["manifest"] = manifest;
  return body;
}

// Jobs until there are `limit`, newest first.
Result<std::vector<controller::JobRecord>> ListPages(
    const ApiClient& client, std::vector<std::pair<std::string, std::string>> filter, int limit) {
  std::vector<controller::JobRecord> jobs;
  filter.emplace_back("limit", std::to_string(std::min(limit, kPage)));
  filter.emplace_back("after", "");
  while (static_cast<int>(jobs.size()) < limit) {
    TRY_ASSIGN(const json::object page, client.Get("/api/v1/jobs" + QueryText(filter)));
    TRY_ASSIGN(std::vector<controller::JobRecord> items,
               ParseItems<controller::JobRecord>(page, ParseJobReply));
    std::ranges::move(items, std::back_inserter(jobs));
    filter.back().second = GetStringOr(page, "next", "");
    if (filter.back().second.empty()) break;
  }
  if (static_cast<int>(jobs.size()) > limit) jobs.resize(static_cast<size_t>(limit));
  return jobs;
}

Status NotHere(const std::string& url, const std::string& what) {
  return Unimplemented(what + " is not possible over a server yet; run it on the machine of " +
                       url + " with SHOAL_SERVER=none and SHOAL_HOME set to its state");
}

class RemoteJobs final : public controller::Jobs {
 public:
  RemoteJobs(std::unique_ptr<ApiClient> client, RemoteJobsOptions options)
      : client_(std::move(client)), options_(std::move(options)) {}

  Result<JobView> Find(const std::string& prefix) override;
  Result<std::vector<JobView>> List(const controller::JobQuery& query) override;
  Result<JobDetails> Describe(const std::string& id) override;
  Result<std::string> Submit(const controller::NewRun& run) override;
  Result<std::vector<controller::SubmittedItem>> SubmitFile(
      const controller::NewFile& file) override {
    TRY_ASSIGN(const json::object body,
               FileRequest(*client_, file, options_.team, options_.on_note));
    TRY_ASSIGN(const json::object reply, PostOnce("/api/v1/submissions", body));
    return ParseSubmission(reply);
  }
  Result<std::vector<json::object>> FindGroups(const std::string& prefix) override {
    return api::FindGroups(*client_, prefix);
  }
  Result<json::object> DescribeGroup(const std::string& team, const std::string& id) override {
    return client_->Get(GroupTarget(team, id));
  }
  Result<json::object> StopGroup(const std::string& team, const std::string& id,
                                 controller::StopMode mode) override {
    return client_->CallJson("POST", GroupTarget(team, id) + "/stop",
                             {{"now", mode == controller::StopMode::kKill}});
  }
  Result<std::unique_ptr<controller::JobRun>> Run(
      net::Loop* loop, const controller::NewRun& run,
      const std::function<void(const std::string& id)>& on_submitted,
      controller::Observer observer) override;
  Result<std::unique_ptr<controller::JobRun>> RunResumed(net::Loop* loop, const std::string& id,
                                                         controller::Observer observer) override;
  Result<JobView> Resume(const std::string& id) override;
  Result<JobView> Stop(const std::string& id, controller::StopMode mode,
                       const std::string& reason) override;
  Result<JobView> Suspend(const std::string& id, const std::string& reason) override;
  Status Scale(const std::string& id, const std::string& role, int replicas) override;
  Result<controller::WhyWaits> Why(const std::string& id) override {
    TRY_ASSIGN(const json::object reply, client_->Get(JobTarget(id, "/why")));
    controller::WhyWaits why;
    why.waits = GetStringOr(reply, "state", "") == job::NameOf(job::JobState::kPending);
    why.reason = GetStringOr(reply, "reason", "");
    why.forecast = GetStringOr(reply, "forecast", "");
    const json::value* const changes = reply.if_contains("changes");
    if (changes != nullptr && changes->is_array())
      for (const json::value& one : changes->get_array())
        if (one.is_string()) why.changes.emplace_back(one.get_string());
    return why;
  }
  Duration TimeSuspended(const std::string& id) override {
    const Result<JobDetails> details = Describe(id);
    return details.ok() ? details->view.suspended : Duration(0);
  }
  Result<std::vector<LogInfo>> SelectLogs(const std::string& id,
                                          const LogSelection& selection) override;
  Result<std::string> ReadLog(const std::string& id, const LogKey& key, int64_t offset,
                              size_t limit) override;
  Result<rendezvous::LogTimes> ReadLogTimes(const std::string& id, const LogKey& key,
                                            int64_t from) override;
  Status SearchLogs(const controller::LogSearchRequest& request,
                    const controller::OnFoundLine& on_found) override;
  Result<int64_t> TailOffset(const std::string& id, const LogKey& key, int lines) override;
  Result<std::unique_ptr<Following>> FollowLogs(net::Loop* loop, const std::string& id,
                                                const LogSelection& selection,
                                                std::map<LogKey, int64_t> from,
                                                controller::LogStore::OnBytes on_bytes,
                                                std::function<void(const Status&)> on_end) override;
  Result<std::vector<OutputFile>> ListOutputs(const std::string& id) override;
  Status CopyOutputs(const std::string& id, const std::vector<OutputFile>& files,
                     const fs::path& directory) override;
  Result<std::vector<controller::SeriesInfo>> ListSeries(const std::string& id) override;
  Result<std::vector<controller::SeriesBucket>> ReadSeries(
      const std::string& id, const std::string& name,
      const controller::SeriesRange& range) override;
  Result<std::vector<std::string>> Prune(Duration age) override;
  Result<std::vector<std::string>> PruneUnreadable() override;
  Result<controller::UsageTable> Usage(const controller::UsageQuery& query) override {
    return RemoteUsage(*client_, query);
  }
  Result<std::unique_ptr<controller::Secrets>> SecretsOf(const std::string& team) override {
    return MakeRemoteSecrets(client_.get(), team);
  }
  Result<std::unique_ptr<controller::Queues>> OpenQueues() override {
    return MakeRemoteQueues(client_.get(), options_.team);
  }
  Result<std::unique_ptr<engine::Execution>> Exec(const std::string& id, const std::string& role,
                                                  int index, const engine::ExecSpec& spec) override;
  Result<UniqueFd> DialTask(const std::string& id, const std::string& role, int index,
                            uint16_t port) override;

 private:
  Result<controller::JobRecord> GetJob(const std::string& id) {
    TRY_ASSIGN(const json::object reply, client_->Get(JobTarget(id)));
    return ParseJobReply(reply);
  }
  Result<controller::JobRecord> Act(const std::string& id, const std::string& action,
                                    const json::object& body) {
    TRY_ASSIGN(const json::object reply,
               client_->CallJson("POST", JobTarget(id, "/" + action), body));
    return ParseJobReply(reply);
  }
  // Waits until the job rests: it has ended, or is suspended. Cancelled by a signal.
  Result<JobView> AwaitRest(const std::string& id);
  Result<json::object> PostOnce(const std::string& target, const json::object& body);
  template <typename T>
  Result<T> Patiently(const std::function<Result<T>()>& call);
  // Executes `call` on a thread while `loop` runs; a signal of `interrupts` makes it end with
  // Cancelled, whatever the server does.
  Status Interruptibly(net::Loop* loop, const std::function<Status()>& call);

  const std::unique_ptr<ApiClient> client_;
  const RemoteJobsOptions options_;
  UniqueFd interrupt_;  // while Interruptibly runs: readable after a signal
};

Result<JobView> RemoteJobs::Find(const std::string& prefix) {
  const auto exact = GetJob(prefix);
  if (exact.ok()) return ViewOf(*exact);
  if (exact.status().code() != Code::kNotFound) return exact.status();
  TRY_ASSIGN(std::vector<controller::JobRecord> found,
             ListPages(*client_, {{"id", prefix}}, kPage));
  const size_t all = found.size();
  if (all > 1) {
    std::vector<controller::JobRecord> unfinished;
    for (const controller::JobRecord& job : found)
      if (!job::IsFinal(job.state)) unfinished.push_back(job);
    if (unfinished.size() == 1) found = std::move(unfinished);
  }
  if (found.empty())
    return NotFound("there is no job " + prefix + "; `shoal jobs --all` lists them");
  if (found.size() == 1) {
    TRY_ASSIGN(const controller::JobRecord job, GetJob(found.front().id));
    return ViewOf(job);
  }
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(found.size(), kShownMatches); ++i)
    names += (i == 0 ? "" : ", ") + found[i].id;
  return InvalidArgument(prefix + " is the beginning of " + std::to_string(all) +
                         " jobs: " + names + (all > kShownMatches ? ", …" : ""));
}

Result<std::vector<JobView>> RemoteJobs::List(const controller::JobQuery& query) {
  std::vector<std::pair<std::string, std::string>> filter;
  if (!query.ended)
    filter.emplace_back("state", "pending,admitted,starting,running,suspended,finishing");
  if (!query.unfinished) filter.emplace_back("state", "succeeded,failed,cancelled");
  TRY_ASSIGN(const auto jobs, ListPages(*client_, std::move(filter), query.limit));
  std::vector<JobView> views;
  for (const controller::JobRecord& job : jobs) views.push_back(ViewOf(job));
  return views;
}

Result<JobDetails> RemoteJobs::Describe(const std::string& id) {
  JobDetails details;
  TRY_ASSIGN(details.view.record, GetJob(id));
  TRY_ASSIGN(const json::object tasks, client_->Get(JobTarget(id, "/tasks")));
  TRY_ASSIGN(details.tasks, ParseItems<controller::TaskRecord>(tasks, controller::ParseTask));
  std::string after;
  do {
    TRY_ASSIGN(
        const json::object page,
        client_->Get(JobTarget(id, "/events") + QueryText({{"limit", "1000"}, {"after", after}})));
    TRY_ASSIGN(std::vector<controller::Event> events,
               ParseItems<controller::Event>(page, ParseEventReply));
    std::ranges::move(events, std::back_inserter(details.events));
    after = GetStringOr(page, "next", "");
  } while (!after.empty());
  details.view.suspended = controller::TimeSuspended(details.events);
  return details;
}

// Repeats a call while the server is away. Only after a call that it has answered: one that was
// never there is told at once.
template <typename T>
Result<T> RemoteJobs::Patiently(const std::function<Result<T>()>& call) {
  constexpr Duration kFirstPause = std::chrono::milliseconds(100);
  constexpr Duration kLongestPause = std::chrono::seconds(2);
  const TimePoint begin = RealClock::Get()->Now();
  Duration pause = kFirstPause;
  while (true) {
    Result<T> result = call();
    const bool away = result.status().code() == Code::kUnavailable;
    if (!away || RealClock::Get()->Now() - begin > JobStream::kPatience) return result;
    if (pause == kFirstPause && options_.on_note)
      options_.on_note(result.status().message() + "; trying again");
    const auto until = std::chrono::steady_clock::now() + pause;
    if (interrupt_.valid()) {
      // The bell is readable after a signal.
      if (net::AwaitFd(interrupt_.get(), POLLIN, until).ok()) return result;
    } else {
      std::this_thread::sleep_until(until);
    }
    pause = std::min(kLongestPause, pause * 2);
  }
}

Status RemoteJobs::Interruptibly(net::Loop* loop, const std::function<Status()>& call) {
  interrupt_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!interrupt_.valid()) return ErrnoStatus(errno, "eventfd");
  std::vector<net::Loop::Id> watches;
  for (const int signal : options_.interrupts) {
    watches.push_back(loop->WatchSignal(signal, [this] {
      const uint64_t one = 1;
      (void)!::write(interrupt_.get(), &one, sizeof one);
    }));
  }
  Status done;
  std::thread thread([&] {
    const net::WaitInterrupt interrupt(interrupt_.get());
    done = call();
    loop->Post([loop] { loop->Stop(); });
  });
  loop->Run();
  thread.join();
  for (const net::Loop::Id watch : watches) loop->Cancel(watch);
  pollfd bell{interrupt_.get(), POLLIN, 0};
  const bool rang = ::poll(&bell, 1, 0) == 1;
  interrupt_.Reset();
  if (!rang || done.ok()) return done;
  return Cancelled("interrupted before the server " + client_->url() +
                   " has answered; `shoal jobs` shows whether it has taken the job");
}

Result<std::string> RemoteJobs::Submit(const controller::NewRun& run) {
  TRY(client_->Get("/api/v1/server").status());
  TRY_ASSIGN(const json::object body, SubmitRequest(*client_, options_, run));
  TRY_ASSIGN(const json::object job, PostOnce("/api/v1/jobs", body));
  return GetString(job, "id");
}

// A repetition after a lost answer finds what the first request has made.
Result<json::object> RemoteJobs::PostOnce(const std::string& target, const json::object& body) {
  ApiRequest request;
  request.method = "POST";
  request.target = target;
  request.content_type = "application/json";
  request.body = ToText(body);
  request.headers = {{"Idempotency-Key", RandomHex(16)}};
  TRY_ASSIGN(const net::HttpReply reply,
             Patiently<net::HttpReply>([&] { return client_->Call(request); }));
  return ParseJsonObject(reply.body);
}

Result<std::unique_ptr<controller::JobRun>> RemoteJobs::Run(
    net::Loop* loop, const controller::NewRun& run,
    const std::function<void(const std::string& id)>& on_submitted, controller::Observer observer) {
  controller::JobRecord job;
  TRY(Interruptibly(loop, [&]() -> Status {
    TRY_ASSIGN(job.id, Submit(run));
    TRY_ASSIGN(job, Patiently<controller::JobRecord>([&] { return GetJob(job.id); }));
    return Status::Ok();
  }));
  on_submitted(job.id);
  return FollowRun(client_.get(), loop, job, std::move(observer));
}

Result<std::unique_ptr<controller::JobRun>> RemoteJobs::RunResumed(net::Loop* loop,
                                                                   const std::string& id,
                                                                   controller::Observer observer) {
  JobView job;
  TRY(Interruptibly(loop, [&]() -> Status {
    TRY_ASSIGN(job, Resume(id));
    return Status::Ok();
  }));
  return FollowRun(client_.get(), loop, job.record, std::move(observer));
}

Result<JobView> RemoteJobs::Resume(const std::string& id) {
  TRY_ASSIGN(const controller::JobRecord job, Act(id, "resume", {}));
  return ViewOf(job);
}

Result<JobView> RemoteJobs::AwaitRest(const std::string& id) {
  net::Loop loop;
  Result<controller::JobRecord> rest = Cancelled("interrupted; the request stays in effect");
  for (const int signal : options_.interrupts) loop.WatchSignal(signal, [&loop] { loop.Stop(); });
  JobStreamOptions options;
  options.id = id;
  options.logs = false;
  JobStreamCallbacks callbacks;
  callbacks.on_event = [&](const controller::Event& event) {
    if (event.type != "suspended") return;
    rest = GetJob(id);
    // A resumed job has an earlier suspension among its events.
    if (!rest.ok() || rest->state == job::JobState::kSuspended) loop.Stop();
  };
  callbacks.on_end = [&](const Result<controller::JobRecord>& job) {
    rest = job;
    loop.Stop();
  };
  const auto stream = JobStream::Open(client_.get(), &loop, options, std::move(callbacks));
  loop.Run();
  TRY(rest.status());
  TRY_ASSIGN(const controller::JobRecord job, GetJob(id));
  return ViewOf(job);
}

Result<JobView> RemoteJobs::Stop(const std::string& id, controller::StopMode mode,
                                 const std::string& /*reason*/) {
  TRY_ASSIGN(const controller::JobRecord job,
             Act(id, "stop", {{"now", mode == controller::StopMode::kKill}}));
  if (job::IsFinal(job.state)) return ViewOf(job);
  return AwaitRest(id);
}

Result<JobView> RemoteJobs::Suspend(const std::string& id, const std::string& /*reason*/) {
  TRY(Act(id, "suspend", {}).status());
  return AwaitRest(id);
}

Status RemoteJobs::Scale(const std::string& id, const std::string& role, int replicas) {
  return Act(id, "scale", {{"role", role}, {"replicas", replicas}}).status();
}

Result<std::vector<LogInfo>> RemoteJobs::SelectLogs(const std::string& id,
                                                    const LogSelection& selection) {
  TRY_ASSIGN(const json::object reply, client_->Get(JobTarget(id, "/logs")));
  TRY_ASSIGN(const std::vector<LogInfo> all, ParseItems<LogInfo>(reply, ParseLogReply));
  return controller::SelectLogs(all, selection, GetStringOr(reply, "removed", ""));
}

Result<std::string> RemoteJobs::ReadLog(const std::string& id, const LogKey& key, int64_t offset,
                                        size_t limit) {
  ApiRequest request;
  const std::string task = key.role + "-" + std::to_string(key.index);
  request.target =
      JobTarget(id, "/logs/" + net::PercentEncode(task) + "/" + std::to_string(key.attempt)) +
      QueryText({{"offset", std::to_string(offset)},
                 {"limit", std::to_string(std::min<size_t>(limit, 8 << 20))}});
  TRY_ASSIGN(net::HttpReply reply, client_->Call(request));
  return std::move(reply.body);
}

Result<rendezvous::LogTimes> RemoteJobs::ReadLogTimes(const std::string& id, const LogKey& key,
                                                      int64_t from) {
  const std::string task = key.role + "-" + std::to_string(key.index);
  TRY_ASSIGN(const json::object reply,
             client_->Get(JobTarget(id, "/logs/" + net::PercentEncode(task) + "/" +
                                            std::to_string(key.attempt) + "/times") +
                          QueryText({{"from", std::to_string(from)}})));
  return ParseLogTimesReply(reply);
}

Status RemoteJobs::SearchLogs(const controller::LogSearchRequest& request,
                              const controller::OnFoundLine& on_found) {
  return SearchRemoteLogs(*client_, request, on_found);
}

Result<int64_t> RemoteJobs::TailOffset(const std::string& id, const LogKey& key, int lines) {
  ApiRequest request;
  const std::string task = key.role + "-" + std::to_string(key.index);
  request.target =
      JobTarget(id, "/logs/" + net::PercentEncode(task) + "/" + std::to_string(key.attempt)) +
      QueryText({{"tail", std::to_string(lines)}, {"limit", "1"}});
  TRY_ASSIGN(const net::HttpReply reply, client_->Call(request));
  const std::string offset = reply.Header("shoal-offset");
  if (offset.empty()) return DataLoss("the server's answer has no Shoal-Offset");
  return std::strtoll(offset.c_str(), nullptr, 10);
}

class RemoteFollowing final : public controller::Jobs::Following {
 public:
  explicit RemoteFollowing(std::unique_ptr<JobStream> stream) : stream_(std::move(stream)) {}

 private:
  const std::unique_ptr<JobStream> stream_;
};

Result<std::unique_ptr<controller::Jobs::Following>> RemoteJobs::FollowLogs(
    net::Loop* loop, const std::string& id, const LogSelection& selection,
    std::map<LogKey, int64_t> from, controller::LogStore::OnBytes on_bytes,
    std::function<void(const Status&)> on_end) {
  JobStreamOptions options;
  options.id = id;
  options.events = false;
  options.selection = selection;
  options.from = std::move(from);
  JobStreamCallbacks callbacks;
  callbacks.on_log = std::move(on_bytes);
  callbacks.on_note = options_.on_note;
  callbacks.on_end = [on_end = std::move(on_end)](const Result<controller::JobRecord>& job) {
    on_end(job.status());
  };
  return std::unique_ptr<Following>(std::make_unique<RemoteFollowing>(
      JobStream::Open(client_.get(), loop, std::move(options), std::move(callbacks))));
}

Result<std::vector<OutputFile>> RemoteJobs::ListOutputs(const std::string& id) {
  TRY_ASSIGN(const json::object reply, client_->Get(JobTarget(id, "/outputs")));
  return ParseItems<OutputFile>(reply, ParseOutputReply);
}

Result<std::vector<controller::SeriesInfo>> RemoteJobs::ListSeries(const std::string& id) {
  TRY_ASSIGN(const json::object reply, client_->Get(JobTarget(id, "/series")));
  return ParseItems<controller::SeriesInfo>(reply, controller::SeriesFromJson);
}

Result<std::vector<controller::SeriesBucket>> RemoteJobs::ReadSeries(
    const std::string& id, const std::string& name, const controller::SeriesRange& range) {
  const auto time = [](int64_t ms) { return FormatWall(WallTime(std::chrono::milliseconds(ms))); };
  std::vector<std::pair<std::string, std::string>> query;
  if (range.from_ms > -controller::kMaxSeriesTime) query.emplace_back("from", time(range.from_ms));
  if (range.to_ms < controller::kMaxSeriesTime) query.emplace_back("to", time(range.to_ms));
  constexpr size_t kMost = 100'000;  // of the route
  query.emplace_back("points",
                     std::to_string(range.points == 0 ? kMost : std::min(range.points, kMost)));
  TRY_ASSIGN(const json::object reply,
             client_->Get(JobTarget(id, "/series/" + net::PercentEncode(name)) + QueryText(query)));
  return controller::PointsFromJson(reply);
}

Status RemoteJobs::CopyOutputs(const std::string& id, const std::vector<OutputFile>& files,
                               const fs::path& directory) {
  return DownloadOutputs(*client_, JobTarget(id, "/outputs/"), files, directory);
}

Result<std::vector<std::string>> RemoteJobs::Prune(Duration age) {
  TRY_ASSIGN(const auto jobs,
             ListPages(*client_, {{"state", "succeeded,failed,cancelled"}}, INT32_MAX));
  const WallTime now = RealClock::Get()->Wall();
  std::vector<std::string> removed;
  for (const controller::JobRecord& job : jobs) {
    if (Duration(now - job.ended) < age) continue;
    TRY(client_->CallJson("DELETE", JobTarget(job.id)).status());
    removed.push_back(job.id);
  }
  std::ranges::reverse(removed);
  TRY_ASSIGN(const std::vector<std::string> groups, PruneGroups(*client_, age));
  removed.insert(removed.end(), groups.begin(), groups.end());
  return removed;
}

Result<std::vector<std::string>> RemoteJobs::PruneUnreadable() {
  return NotHere(client_->url(), "removing unreadable records");
}

Result<std::unique_ptr<engine::Execution>> RemoteJobs::Exec(const std::string& /*id*/,
                                                            const std::string& /*role*/,
                                                            int /*index*/,
                                                            const engine::ExecSpec& /*spec*/) {
  return NotHere(client_->url(), "`shoal exec`");
}

Result<UniqueFd> RemoteJobs::DialTask(const std::string& /*id*/, const std::string& /*role*/,
                                      int /*index*/, uint16_t /*port*/) {
  return NotHere(client_->url(), "`shoal forward`");
}

}  // namespace

Result<std::unique_ptr<controller::Jobs>> MakeRemoteJobs(const Login& login,
                                                         RemoteJobsOptions options) {
  TRY_ASSIGN(std::unique_ptr<ApiClient> client, ApiClient::Make(login));
  return std::unique_ptr<controller::Jobs>(
      std::make_unique<RemoteJobs>(std::move(client), std::move(options)));
}

}  // namespace shoal::api
