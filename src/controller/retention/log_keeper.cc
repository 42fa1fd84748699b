#include "controller/retention/log_keeper.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/access/directory_owner.h"
#include "base/log.h"
#include "controller/retention/removed_logs.h"
#include "job/execution/job_dir.h"
#include "rendezvous/logs/log_archive.h"

namespace shoal::controller {
namespace {

namespace fs = std::filesystem;
using job::JobState;

constexpr int kPage = 200;
constexpr int kEventsAtOnce = 500;
constexpr int kNice = 10;
constexpr int64_t kBlock = 512;

const std::vector<JobState>& FinalStates() {
  static const std::vector<JobState> states = {JobState::kSucceeded, JobState::kFailed,
                                               JobState::kCancelled};
  return states;
}

// Of the files in the directory, as the disk has them.
int64_t DiskBytes(const fs::path& logs) {
  int64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(logs, error), end; !error && at != end; at.increment(error)) {
    struct stat info {};
    if (::lstat(at->path().c_str(), &info) == 0) bytes += info.st_blocks * kBlock;
  }
  return bytes;
}

std::string SizeText(int64_t bytes) {
  constexpr double kGib = 1 << 30;
  constexpr double kMib = 1 << 20;
  if (bytes < static_cast<int64_t>(kMib)) return std::to_string(bytes) + " bytes";
  char text[64] = {};
  const auto value = static_cast<double>(bytes);
  std::snprintf(text, sizeof text, value >= kGib ? "%.1f GiB" : "%.1f MiB",
                value / (value >= kGib ? kGib : kMib));
  return text;
}

// Segments, archives and their times, but not the mark.
bool IsLogFile(const std::string& name) {
  return rendezvous::ParseLogFileName(name) || rendezvous::ParseArchiveFileName(name) ||
         name.ends_with(".times") || name.ends_with(".new");
}

}  // namespace

LogKeeper::LogKeeper(LogKeeperOptions options) : options_(std::move(options)) {}

Result<std::unique_ptr<LogKeeper>> LogKeeper::Start(LogKeeperOptions options) {
  std::unique_ptr<LogKeeper> keeper(new LogKeeper(std::move(options)));
  LogKeeper* const self = keeper.get();
  TRY_ASSIGN(self->position_, self->options_.store->LastPosition());
  TRY_ASSIGN(self->watcher_, self->options_.store->Watch([self] {
    if (!self->reading_.exchange(true)) self->tasks_.Post([self] { self->ReadNewEvents(); });
  }));
  self->tasks_.Post([self] { self->Begin(); });
  self->thread_ = std::thread([self] {
    // Of this thread only, as Linux has it.
    (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
    self->loop_.Run();
  });
  return keeper;
}

LogKeeper::~LogKeeper() {
  ending_ = true;
  watcher_.reset();
  loop_.Stop();
  if (thread_.joinable()) thread_.join();
}

void LogKeeper::CheckLimits() {
  tasks_.Post([this] { EnforceAfter(Duration(0)); });
}

LogKeeperCounters LogKeeper::counters() const {
  return {compressed_.load(),   compressed_bytes_.load(), archive_bytes_.load(),
          removed_jobs_.load(), removed_bytes_.load(),    failures_.load()};
}

void LogKeeper::Begin() {
  CompressAll("");
  EnforceAfter(Duration(0));
}

// A page at a time, with what has happened meanwhile in between.
void LogKeeper::CompressAll(const std::string& cursor) {
  const auto page = options_.store->ListPage({}, cursor, kPage);
  if (!page.ok()) {
    LogWarning("the logs of jobs are not compressed: {}", page.status().message());
    return;
  }
  for (const JobSummary& job : page->jobs) {
    if (ending_) return;
    CompressEnded(job.id, job::IsFinal(job.state));
  }
  if (!page->next.empty()) tasks_.Post([this, next = page->next] { CompressAll(next); });
}

// The end of an attempt is an event once its log is in the job's directory; nothing is appended
// afterwards.
void LogKeeper::CompressEnded(const std::string& job, bool job_ended) {
  const fs::path logs = job::JobDir(options_.home.job_dir(job)).logs();
  std::set<LogKey> segments;
  {
    const FileAccessAs owner(logs.parent_path());
    std::error_code error;
    for (fs::directory_iterator at(logs, error), end; !error && at != end; at.increment(error)) {
      const auto key = rendezvous::ParseLogFileName(at->path().filename().string());
      if (key) segments.insert(*key);
    }
  }
  if (segments.empty()) return;
  std::vector<TaskRecord> tasks;
  if (!job_ended) {
    auto listed = options_.store->ListTasks(job);
    if (!listed.ok()) return;
    tasks = std::move(*listed);
  }
  for (const LogKey& key : segments) {
    const bool ended =
        job_ended || std::ranges::any_of(tasks, [&key](const TaskRecord& task) {
          return task.role == key.role && task.index == key.index &&
                 (task.attempt > key.attempt || (task.attempt == key.attempt && task.end));
        });
    if (ending_) return;
    if (ended) CompressOne(job, logs, key);
  }
}

namespace {

// A file of terabytes without content, which would be compressed for hours to gain nothing.
bool IsMostlyHoles(const struct stat& info) {
  constexpr int64_t kLeast = int64_t{256} << 20;
  constexpr int64_t kRatio = 64;  // more than file systems that compress save of a text
  return info.st_size > kLeast && info.st_blocks * kBlock < info.st_size / kRatio;
}

}  // namespace

void LogKeeper::CompressOne(const std::string& job, const fs::path& logs, const LogKey& key) {
  const FileAccessAs owner(logs.parent_path());
  struct stat info {};
  if (::stat((logs / rendezvous::LogFileName(key)).c_str(), &info) != 0) return;
  const int64_t bytes = info.st_size;
  if (!S_ISREG(info.st_mode) || bytes < kLeastBytes || IsMostlyHoles(info)) return;
  const auto archive = rendezvous::CompressLog(logs, key);
  if (!archive.ok()) {
    if (archive.status().code() == Code::kNotFound) return;  // removed with its job
    ++failures_;
    LogWarning("the log {} of {} is not compressed: {}", rendezvous::LogFileName(key), job,
               archive.status().message());
    return;
  }
  ++compressed_;
  compressed_bytes_ += static_cast<uint64_t>(bytes);
  archive_bytes_ += static_cast<uint64_t>(*archive);
  bytes_.erase(job);
}

void LogKeeper::ReadNewEvents() {
  reading_ = false;
  std::map<std::string, bool> jobs;  // with an ended attempt; whether the job has ended
  while (!ending_) {
    const auto events = options_.store->ReadAllEvents(position_, kEventsAtOnce);
    if (!events.ok() || events->empty()) break;
    for (const StoredEvent& event : *events) {
      position_ = event.position;
      if (event.event.type == "ended") jobs[event.job] = true;
      if (event.event.type == "task" && event.event.body.contains("end")) jobs[event.job];
    }
  }
  bool ended = false;
  for (const auto& [job, job_ended] : jobs) {
    if (ending_) return;
    CompressEnded(job, job_ended);
    ended = ended || job_ended;
  }
  if (ended) EnforceAfter(kPause);
}

void LogKeeper::EnforceAfter(Duration delay) {
  const TimePoint at = options_.clock->Now() + delay;
  if (timer_ != 0 && timer_at_ <= at) return;
  if (timer_ != 0) loop_.Cancel(timer_);
  timer_at_ = at;
  timer_ = loop_.After(delay, [this] {
    timer_ = 0;
    Enforce();
  });
}

void LogKeeper::Enforce() {
  const Status done = EnforceAll();
  used_.clear();
  limits_.clear();
  if (!done.ok()) LogWarning("the limits of logs were not applied: {}", done.message());
  EnforceAfter(kInterval);
}

// Unfinished jobs take their part first; then the newest ended jobs keep their logs.
Status LogKeeper::EnforceAll() {
  const WallTime now = options_.clock->Wall();
  JobFilter unfinished;
  unfinished.states = {JobState::kPending, JobState::kAdmitted,  JobState::kStarting,
                       JobState::kRunning, JobState::kSuspended, JobState::kFinishing};
  JobFilter ended;
  ended.states = FinalStates();
  for (const JobFilter& filter : {unfinished, ended}) {
    std::string cursor;
    do {
      TRY_ASSIGN(const JobPage page, options_.store->ListPage(filter, cursor, kPage));
      for (const JobSummary& job : page.jobs) {
        if (ending_) return Status::Ok();
        TRY(EnforceJob(job, now));
      }
      cursor = page.next;
    } while (!cursor.empty());
  }
  return Status::Ok();
}

Result<LogLimits> LogKeeper::LimitsOf(const std::string& team) {
  const auto known = limits_.find(team);
  if (known != limits_.end()) return known->second;
  TRY_ASSIGN(const LogLimits limits, options_.limits_of(team));
  limits_[team] = limits;
  return limits;
}

Status LogKeeper::EnforceJob(const JobSummary& job, WallTime now) {
  TRY_ASSIGN(const LogLimits limits, LimitsOf(job.team));
  if (!limits.keep && !limits.bytes) return Status::Ok();
  const int64_t bytes = BytesOf(job);
  if (bytes == 0) return Status::Ok();
  const bool ended = job::IsFinal(job.state);
  constexpr std::chrono::hours kDay{24};
  if (ended && limits.keep && now - job.ended > *limits.keep) {
    TryToRemoveLogs(
        job, "the job ended more than " + std::to_string(*limits.keep / kDay) + " days ago", now);
    return Status::Ok();
  }
  int64_t& used = used_[job.team];
  used += bytes;
  if (!ended || !limits.bytes || used <= *limits.bytes) return Status::Ok();
  used -= bytes;
  const std::string why = "the logs of team " + job.team + " are limited to " +
                          SizeText(*limits.bytes) + ", which newer ones take up";
  TryToRemoveLogs(job, why, now);
  used = std::max(used, *limits.bytes);  // older ones go, too
  return Status::Ok();
}

// What a user makes of its own directory must not keep the logs of others from being removed.
void LogKeeper::TryToRemoveLogs(const JobSummary& job, const std::string& why, WallTime now) {
  const Status removed = RemoveLogs(job, why, now);
  if (removed.ok()) return;
  ++failures_;
  LogWarning("the logs of {} are not removed: {}", job.id, removed.message());
}

int64_t LogKeeper::BytesOf(const JobSummary& job) {
  const fs::path logs = job::JobDir(options_.home.job_dir(job.id)).logs();
  const FileAccessAs owner(logs.parent_path());
  if (!job::IsFinal(job.state)) return DiskBytes(logs);
  const auto known = bytes_.find(job.id);
  if (known != bytes_.end()) return known->second;
  const int64_t bytes = ReadRemovedLogs(logs) ? 0 : DiskBytes(logs);
  bytes_[job.id] = bytes;
  return bytes;
}

// The mark comes first: if it cannot be written, nothing is removed.
Status LogKeeper::RemoveLogs(const JobSummary& job, const std::string& why, WallTime now) {
  const fs::path logs = job::JobDir(options_.home.job_dir(job.id)).logs();
  const RemovedLogs removed{now, BytesOf(job), why};
  {
    const FileAccessAs owner(logs.parent_path());
    TRY(WriteRemovedLogs(logs, removed).With(job.id));
    std::error_code error;
    std::vector<fs::path> files;
    for (fs::directory_iterator at(logs, error), end; !error && at != end; at.increment(error))
      if (IsLogFile(at->path().filename().string())) files.push_back(at->path());
    for (const fs::path& file : files) fs::remove(file, error);
  }
  const Event note = NoteEvent(now, "the logs were " + SentenceOf(removed));
  const Status noted = options_.store->Append(job.id, {&note, 1}, Durability::kWritten);
  if (!noted.ok() && noted.code() != Code::kNotFound) return noted;
  bytes_[job.id] = 0;
  ++removed_jobs_;
  removed_bytes_ += static_cast<uint64_t>(removed.bytes);
  return Status::Ok();
}

}  // namespace shoal::controller
