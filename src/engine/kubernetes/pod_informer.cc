#include "engine/kubernetes/pod_informer.h"

#include <algorithm>

#include "base/id.h"
#include "base/log.h"
#include "base/mutex.h"
#include "engine/docker/decode.h"

namespace shoal::engine::kubernetes {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStep{1'000};  // interval of polls for state that the watch does not report
constexpr milliseconds kLivenessCheckInterval{5'000};
constexpr int kWatchSeconds = 300;  // the server ends a watch then; the next one continues
constexpr size_t kMaxLine = 8 << 20;
constexpr size_t kLogTail = 4096;
constexpr int kGone = 410;

}  // namespace

PodInformer::PodInformer(Options options, EventCallback on_events)
    : options_(std::move(options)),
      on_events_(std::move(on_events)),
      state_(options_.job_id, options_.restart) {}

std::string PodInformer::PodsPath() const {
  return "/api/v1/namespaces/" + options_.name_space +
         "/pods?labelSelector=" + net::PercentEncode(kJobLabel + ("=" + options_.job_id));
}

// ---- What the engine's calls ask ----

Result<bool> PodInformer::Adopt() {
  TRY_ASSIGN(const json::object jobs,
             options_.client->Get(
                 "/apis/batch/v1/namespaces/" + options_.name_space +
                 "/jobs?labelSelector=" + net::PercentEncode(kJobLabel + ("=" + options_.job_id))));
  TRY_ASSIGN(ListResult<JobView> listed, DecodeJobs(jobs));
  if (listed.items.empty()) return false;
  TRY_ASSIGN(const json::object pods, options_.client->Get(PodsPath()));
  TRY_ASSIGN(const ListResult<PodView> seen, DecodePods(pods));
  const MutexLock lock(mu_);
  state_.SetJobs(std::move(listed.items));
  state_.Adopt(seen.items, options_.clock->Now());
  return true;
}

void PodInformer::Start() {
  const MutexLock lock(thread_mu_);
  if (!thread_.joinable()) thread_ = std::thread([this] { Follow(); });
}

void PodInformer::End() {
  {
    const MutexLock lock(mu_);
    ending_ = true;
    if (stream_ != nullptr) stream_->Cancel();
  }
  changed_.notify_all();
  const MutexLock lock(thread_mu_);
  if (thread_.joinable()) thread_.join();
}

void PodInformer::SetDesired(const DesiredJob& desired, const JobChanges& changes) {
  std::vector<TaskEvent> events;
  const MutexLock lock(mu_);
  std::vector<JobView> jobs = state_.jobs();
  std::erase_if(jobs, [&](const JobView& job) {
    return std::find(changes.remove.begin(), changes.remove.end(), job.name) !=
           changes.remove.end();
  });
  for (JobView& job : jobs) {
    for (const Resize& resize : changes.resize) {
      if (resize.name != job.name) continue;
      job.completions = resize.count;
      job.bases = resize.bases;
    }
  }
  for (const RoleJob& made : changes.make) {
    JobView job;
    job.name = made.name;
    job.job = options_.job_id;
    job.role = made.role;
    job.single = made.single;
    job.completions = made.count;
    job.order = made.order;
    job.digest = made.digest;
    job.bases = made.bases;
    job.restarts = made.restarts;
    jobs.push_back(std::move(job));
  }
  state_.SetJobs(std::move(jobs));
  state_.SetDesired(desired, changes, &events);
  on_events_(std::move(events));
}

void PodInformer::AddJob(const JobView& made) {
  const MutexLock lock(mu_);
  std::vector<JobView> jobs = state_.jobs();
  for (JobView& job : jobs) {
    if (job.name == made.name) job = made;
  }
  state_.SetJobs(std::move(jobs));
}

void PodInformer::Stopping() {
  const MutexLock lock(mu_);
  state_.Stopping();
}

bool PodInformer::stopping() const {
  const MutexLock lock(mu_);
  return state_.stopping();
}

std::vector<JobView> PodInformer::jobs() const {
  const MutexLock lock(mu_);
  return state_.jobs();
}

std::map<TaskKey, KnownTask> PodInformer::KnownTasks() const {
  const MutexLock lock(mu_);
  return state_.KnownTasks();
}

Owner PodInformer::owner() const {
  const MutexLock lock(mu_);
  for (const JobView& job : state_.jobs()) {
    if (IsCoordinator(job.role) && !job.uid.empty()) return {job.name, job.uid};
  }
  return {};
}

std::vector<TaskStatus> PodInformer::List() const {
  const MutexLock lock(mu_);
  return state_.List();
}

std::optional<PodView> PodInformer::PodOf(const std::string& role, int index) const {
  const MutexLock lock(mu_);
  const PodView* const pod = state_.PodOf(role, index);
  return pod == nullptr ? std::nullopt : std::optional(*pod);
}

Result<std::string> PodInformer::Log(const std::string& role, int index, size_t limit) const {
  const auto pod = PodOf(role, index);
  if (!pod) return std::string();
  // A line has at least one byte.
  auto text = options_.client->Text("/api/v1/namespaces/" + options_.name_space + "/pods/" +
                                        pod->name + "/log?container=" + kTaskContainer +
                                        "&tailLines=" + std::to_string(limit),
                                    limit);
  const Code code = text.status().code();
  // The pod is gone, or its container has not started.
  if (code == Code::kNotFound || code == Code::kInvalidArgument) return std::string();
  return text;
}

Status PodInformer::AwaitNoPods(milliseconds patience) {
  MutexLock lock(mu_);
  const int interrupts = interrupts_;
  const bool told = changed_.wait_for(lock, patience, [&]() REQUIRES(mu_) {
    return ending_ || interrupts_ != interrupts || (listed_ && present_.empty());
  });
  if (!told) return DeadlineExceeded("pods are left");
  return interrupts_ == interrupts ? Status::Ok() : Cancelled("the wait for pods was interrupted");
}

void PodInformer::Interrupt() {
  {
    const MutexLock lock(mu_);
    ++interrupts_;
  }
  changed_.notify_all();
}

// ---- The thread ----

bool PodInformer::Sleep(milliseconds time) {
  MutexLock lock(mu_);
  return !changed_.wait_for(lock, time, [this]() REQUIRES(mu_) { return ending_; });
}

void PodInformer::Follow() {
  std::string version;  // empty: list first
  int failures = 0;     // in a row, including watches that end too soon
  bool told = false;
  for (;;) {
    Status ended = version.empty() ? ListAll(&version) : Status::Ok();
    const TimePoint begun = options_.clock->Now();
    if (ended.ok()) ended = WatchOn(&version);
    const bool lasted = options_.clock->Now() - begun > kLivenessCheckInterval;
    if (lasted) {
      failures = 0;
      told = false;
    }
    {
      const MutexLock lock(mu_);
      stream_.reset();
      if (ending_) return;
    }
    if (ended.ok() && lasted) continue;
    if (ended.code() == Code::kOutOfRange) version.clear();  // version expired: list again
    if (++failures >= 3 && !ended.ok() && !std::exchange(told, true))
      LogWarning("job {}: its pods cannot be watched: {}; retrying", options_.job_id,
                 ended.message());
    if (!Sleep(BackOff(failures, RandomSeed()))) return;
  }
}

Status PodInformer::ListAll(std::string* version) {
  TRY_ASSIGN(const json::object list, options_.client->Get(PodsPath()));
  TRY_ASSIGN(const ListResult<PodView> pods, DecodePods(list));
  std::vector<TaskEvent> events;
  {
    const MutexLock lock(mu_);
    state_.ReplacePods(
        pods.items, options_.clock->Now(), [] { return std::string(); }, &events);
    present_.clear();
    for (const PodView& pod : pods.items) present_.insert(pod.uid);
    listed_ = true;
    on_events_(std::move(events));
  }
  changed_.notify_all();
  *version = pods.version;
  return Status::Ok();
}

Status PodInformer::WatchOn(std::string* version) {
  TRY_ASSIGN(std::unique_ptr<net::HttpStream> opened,
             options_.client->Watch(PodsPath() + "&watch=true&allowWatchBookmarks=true" +
                                    "&timeoutSeconds=" + std::to_string(kWatchSeconds) +
                                    "&resourceVersion=" + *version));
  const std::shared_ptr<net::HttpStream> stream = std::move(opened);
  {
    const MutexLock lock(mu_);
    if (ending_) return Cancelled("the engine ends");
    stream_ = stream;
  }
  return Read(stream.get(), version);
}

Status PodInformer::Read(net::HttpStream* stream, std::string* version) {
  docker::LineCutter cutter(kMaxLine);
  for (;;) {
    PollJobs();
    auto bytes = stream->Next(kStep);
    if (bytes.status().code() == Code::kDeadlineExceeded) continue;
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty()) return Status::Ok();  // end of the watch's time
    std::vector<std::string> lines;
    TRY(cutter.Feed(*bytes, &lines));
    for (const std::string& line : lines) TRY(ApplyLine(line, version));
  }
}

Status PodInformer::ApplyLine(const std::string& line, std::string* version) {
  TRY_ASSIGN(const WatchEvent event, DecodeWatchLine(line));
  if (event.kind == WatchEvent::Kind::kError) {
    const std::string text = "the watch ended: " + event.error;
    return event.error_code == kGone ? OutOfRange(text) : Unavailable(text);
  }
  if (!event.version.empty()) *version = event.version;
  if (!event.pod) return Status::Ok();
  const PodView& pod = *event.pod;
  const std::string words = ReadLogTail(pod);
  std::vector<TaskEvent> events;
  {
    const MutexLock lock(mu_);
    state_.UpdatePod(
        pod, options_.clock->Now(), [&] { return words; }, &events);
    if (event.kind == WatchEvent::Kind::kDeleted) {
      present_.erase(pod.uid);
      state_.RemovePod(pod, options_.clock->Now(), &events);
    } else {
      present_.insert(pod.uid);
    }
    on_events_(std::move(events));
  }
  changed_.notify_all();
  return Status::Ok();
}

std::string PodInformer::ReadLogTail(const PodView& pod) const {
  if (!pod.ended || pod.exit_code == 0 || !pod.started) return "";
  {
    const MutexLock lock(mu_);
    const PodView* const known = state_.PodOf(pod.role, pod.index);
    if (state_.stopping() || (known != nullptr && known->uid == pod.uid && known->ended)) return "";
  }
  return options_.client
      ->Text("/api/v1/namespaces/" + options_.name_space + "/pods/" + pod.name +
                 "/log?container=" + kTaskContainer + "&tailLines=20",
             kLogTail)
      .value_or("");
}

void PodInformer::PollJobs() {
  const TimePoint now = options_.clock->Now();
  if (now - looked_ < kLivenessCheckInterval) return;
  bool without = false;
  bool none = false;
  {
    const MutexLock lock(mu_);
    if (state_.stopping() || ending_) return;
    without = state_.AnyWithoutPod();
    none = !state_.AnyAlive() && state_.AnyWanted();
  }
  const bool first = looked_ == TimePoint{};
  looked_ = now;
  if (first) return;  // pods appear with a delay
  std::vector<TaskEvent> events;
  if (without) {
    const auto list = options_.client->Get(
        "/api/v1/namespaces/" + options_.name_space +
        "/events?fieldSelector=" + net::PercentEncode("reason=FailedCreate") + "&limit=500");
    const MutexLock lock(mu_);
    if (list.ok()) state_.SetCreateErrors(DecodeFailedCreates(*list), &events);
    on_events_(std::exchange(events, {}));
  }
  if (none && AreRemoved()) {
    const MutexLock lock(mu_);
    if (state_.stopping()) return;
    state_.MarkRemoved("its objects were removed from the cluster, with their namespace " +
                           options_.name_space + " or by a user; submit the job again",
                       &events);
    on_events_(std::move(events));
  }
}

// In a namespace that is being deleted no object can be created, also no event; its Jobs exist
// until the last pod is gone.
bool PodInformer::AreRemoved() const {
  const auto space = options_.client->Get("/api/v1/namespaces/" + options_.name_space);
  if (space.ok() && IsBeingDeleted(*space)) return true;
  const auto jobs = options_.client->Get(
      "/apis/batch/v1/namespaces/" + options_.name_space +
      "/jobs?labelSelector=" + net::PercentEncode(kJobLabel + ("=" + options_.job_id)));
  if (!jobs.ok()) return false;
  const auto listed = DecodeJobs(*jobs);
  return listed.ok() && listed->items.empty();
}

}  // namespace shoal::engine::kubernetes
