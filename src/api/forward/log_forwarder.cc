#include "api/forward/log_forwarder.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "api/webhooks/delivery.h"
#include "base/access/directory_owner.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/utf8.h"
#include "controller/files/log_lines.h"
#include "job/execution/job_dir.h"
#include "net/byte_channel.h"
#include "rendezvous/logs/log_times.h"

namespace shoal::api {
namespace {

using controller::LogInfo;
using controller::LogKey;
using controller::LogLine;

constexpr const char* kKind = "log-forward";
constexpr int kPage = 1000;
constexpr int kEventsAtOnce = 500;
constexpr size_t kPiece = size_t{256} << 10;
constexpr size_t kChangesAtOnce = 200;
constexpr Duration kSaveEvery = std::chrono::seconds(1);
constexpr Duration kLongWait = std::chrono::minutes(1);
constexpr Duration kStorePause = std::chrono::seconds(5);

// Of the state of all logs of a forwarder; no job has an empty id.
std::string KeyOf(const std::string& forwarder, const std::string& job) {
  return forwarder + "/" + job;
}

// The bytes between a line and the entry of the index that has its time: a nanosecond each keeps
// the order of lines, since entries of a log that grows by less than 1 GB/s are further apart.
int64_t BytesBehind(const rendezvous::LogTimes& times, int64_t offset) {
  constexpr int64_t kMost = 999'999'999;
  const auto after =
      std::ranges::upper_bound(times.entries, offset, {}, &rendezvous::LogTime::offset);
  return after == times.entries.begin() ? 0 : std::min(offset - std::prev(after)->offset, kMost);
}

}  // namespace

Result<std::unique_ptr<LogForwarder>> LogForwarder::Start(LogForwarderOptions options) {
  std::unique_ptr<LogForwarder> made(new LogForwarder(std::move(options)));
  LogForwarder* const self = made.get();
  self->interrupt_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!self->interrupt_.valid()) return ErrnoStatus(errno, "cannot make an event descriptor");
  TRY(self->Load());
  TRY_ASSIGN(self->watcher_, self->options_.store->Watch([self] { self->Grew(""); }));
  self->thread_ = std::thread([self] { self->Run(); });
  return made;
}

LogForwarder::~LogForwarder() {
  watcher_.reset();
  {
    const MutexLock lock(mu_);
    stop_ = true;
  }
  changed_.notify_all();
  ::eventfd_write(interrupt_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

void LogForwarder::Grew(const std::string& job) {
  const MutexLock lock(mu_);
  if (!job.empty() && !dirty_.insert(job).second) return;
  if (!std::exchange(news_, true)) changed_.notify_all();
}

bool LogForwarder::stopping() {
  const MutexLock lock(mu_);
  return stop_;
}

void LogForwarder::Wait(Duration most) {
  MutexLock lock(mu_);
  changed_.wait_for(lock, most, [this]() REQUIRES(mu_) { return stop_ || news_; });
}

LogForwarderCounters LogForwarder::counters() const {
  return {lines_.load(),     bytes_.load(), failures_.load(), rejected_.load(),
          lost_logs_.load(), count_.load(), failing_.load()};
}

// A forwarder that is new begins with the jobs that have not ended, and what they print from now on
// or have printed.
Status LogForwarder::Load() {
  controller::Records& records = options_.store->records();
  const std::string prefix = KeyOf(options_.config.name, "");
  const auto state = records.Get(kKind, prefix);
  if (state.ok()) {
    position_ = GetIntOr(state->body, "position", 0);
  } else {
    TRY_ASSIGN(position_, options_.store->LastPosition());
    TRY_ASSIGN(const auto unfinished, options_.store->ListJobs({.ended = false, .limit = INT_MAX}));
    for (const controller::JobRecord& job : unfinished) TRY(AddJob(job.id));
  }
  saved_position_ = state.ok() ? position_ : -1;
  std::string after = prefix;
  do {
    TRY_ASSIGN(const controller::RecordPage page, records.List(kKind, prefix, after, kPage));
    for (const controller::Record& record : page.records) {
      const std::string id = record.key.substr(prefix.size());
      TRY(AddJob(id));
      const auto job = jobs_.find(id);
      if (job == jobs_.end()) continue;
      for (const auto& [name, offset] : record.body) {
        const auto key = rendezvous::ParseLogFileName(std::string(name) + ".log");
        if (key && offset.is_int64()) job->second.offsets[*key] = offset.get_int64();
      }
    }
    after = page.next;
  } while (!after.empty());
  return Status::Ok();
}

Status LogForwarder::AddJob(const std::string& id) {
  if (jobs_.contains(id)) return Status::Ok();
  const auto record = options_.store->GetJob(id);
  if (record.status().code() == Code::kNotFound) return Forget(id);
  TRY(record.status());
  const auto& teams = options_.config.teams;
  if (!teams.empty() && std::ranges::find(teams, record->team) == teams.end()) return Status::Ok();
  Job job;
  job.prototype.job = id;
  job.prototype.name = record->name;
  job.prototype.team = record->team;
  job.prototype.user = record->user;
  job.prototype.engine = record->engine;
  job.ended = job::IsFinal(record->state);
  job.changed = true;
  jobs_.emplace(id, std::move(job));
  waiting_.insert(id);
  return Status::Ok();
}

Status LogForwarder::Forget(const std::string& id) {
  const std::string key = KeyOf(options_.config.name, id);
  const Status removed =
      options_.store->records().Delete(kKind, key, controller::kAnyVersion, options_.clock->Wall());
  return removed.code() == Code::kNotFound ? Status::Ok() : removed;
}

Status LogForwarder::ReadEvents() {
  while (true) {
    TRY_ASSIGN(const auto events, options_.store->ReadAllEvents(position_, kEventsAtOnce));
    if (events.empty()) return Status::Ok();
    for (const controller::StoredEvent& event : events) {
      const bool ended = event.event.type == "ended";
      if (ended || event.event.type == "running" || event.event.type == "task")
        TRY(AddJob(event.job));
      const auto job = jobs_.find(event.job);
      if (job != jobs_.end()) waiting_.insert(event.job);
      if (job != jobs_.end() && ended) job->second.ended = true;
      position_ = event.position;
    }
  }
}

void LogForwarder::Run() {
  while (!stopping()) {
    {
      const MutexLock lock(mu_);
      news_ = false;
      for (const std::string& id : dirty_) waiting_.insert(id);
      dirty_.clear();
    }
    const Status read = ReadEvents();
    if (!read.ok()) {
      LogWarning("logs are not forwarded to {}: {}", name(), read.message());
      Wait(kStorePause);
      continue;
    }
    Batch batch;
    Fill(&batch);
    count_ = jobs_.size();
    if (!Deliver(batch)) break;
    Advance(batch);
    Save(false);
    const bool unsaved =
        std::ranges::any_of(jobs_, [](const auto& job) { return job.second.changed; });
    if (waiting_.empty()) Wait(unsaved ? kSaveEvery : kLongWait);
  }
  Save(true);
}

// One batch of the jobs that have something, in turn.
void LogForwarder::Fill(Batch* batch) {
  for (size_t left = waiting_.size(); left > 0 && !batch->full(); --left) {
    auto id = waiting_.upper_bound(turn_);
    if (id == waiting_.end()) id = waiting_.begin();
    turn_ = *id;
    const auto job = jobs_.find(turn_);
    if (job == jobs_.end() || FillFrom(turn_, &job->second, batch)) waiting_.erase(turn_);
  }
}

bool LogForwarder::FillFrom(const std::string& id, Job* job, Batch* batch) {
  const controller::LogStore store(options_.home.job_dir(id));
  const auto logs = store.List();
  if (!logs.ok()) return true;
  for (const LogInfo& log : *logs)
    if (!FillLog(id, job, log, batch)) return false;
  for (const auto& [key, offset] : job->offsets) {
    const bool there = std::ranges::find(*logs, key, &LogInfo::key) != logs->end();
    if (!there) ++lost_logs_;
  }
  std::erase_if(job->offsets, [&](const auto& one) {
    return std::ranges::find(*logs, one.first, &LogInfo::key) == logs->end();
  });
  // Everything of an ended job is in this batch or was sent before.
  if (job->ended) batch->finished.insert(id);
  return true;
}

bool LogForwarder::FillLog(const std::string& id, Job* job, const LogInfo& log, Batch* batch) {
  int64_t offset = job->offsets[log.key];
  if (offset >= log.bytes) return true;
  const controller::LogStore store(options_.home.job_dir(id));
  rendezvous::LogTimes known;
  const auto times = [&known, dir = job::JobDir(options_.home.job_dir(id)).logs(),
                      key = log.key](int64_t from) {
    const FileAccessAs owner(dir.parent_path());
    auto read = rendezvous::ReadLogTimes(dir, key, from);
    if (read.ok()) known = *read;
    return read;
  };
  controller::LineScanner scanner({}, true, times);
  int64_t reached = offset;
  const auto on_line = [&](const LogLine& line) {
    ForwardLine one = job->prototype;
    one.role = log.key.role;
    one.index = log.key.index;
    one.attempt = log.key.attempt;
    one.offset = line.offset;
    one.time = line.time.value_or(options_.clock->Wall());
    one.nanoseconds = BytesBehind(known, line.offset);
    one.text = ValidUtf8(std::string(line.text));
    batch->bytes += one.text.size();
    batch->lines.push_back(std::move(one));
    const auto size = static_cast<int64_t>(line.text.size());
    reached = line.offset + size + (line.text.size() < controller::kLongestLine ? 1 : 0);
    return !batch->full();
  };
  bool more = true;
  while (more && offset < log.bytes) {
    const auto bytes = store.Read(log.key, offset, kPiece);
    if (!bytes.ok() || bytes->empty()) break;
    more = scanner.Add(offset, *bytes, on_line).value_or(true);
    offset += static_cast<int64_t>(bytes->size());
  }
  // The last line of a job that has ended may be without a line feed.
  if (more && job->ended) more = scanner.Finish(on_line).value_or(true);
  batch->reaches[{id, log.key}] = std::min(reached, log.bytes);
  return more;
}

bool LogForwarder::Pause(Duration time) {
  const TimePoint until = options_.clock->Now() + time;
  MutexLock lock(mu_);
  while (!stop_ && options_.clock->Now() < until)
    changed_.wait_for(lock, until - options_.clock->Now());
  return !stop_;
}

// Until the receiver has taken or rejected each line.
bool LogForwarder::Deliver(const Batch& batch) {
  const net::WaitInterrupt interrupt(interrupt_.get());
  std::vector<const ForwardLine*> left;
  for (const ForwardLine& line : batch.lines) left.push_back(&line);
  for (int failures = 1; !left.empty(); ++failures) {
    const SendOutcome outcome = options_.sink->Send(left);
    if (stopping() && !outcome.error.empty()) return false;
    lines_ += left.size() - outcome.again.size() - outcome.rejected;
    rejected_ += outcome.rejected;
    std::vector<const ForwardLine*> again;
    for (const size_t number : outcome.again) again.push_back(left[number]);
    left = std::move(again);
    if (!outcome.error.empty()) ++failures_;
    const bool news = failing_.exchange(!left.empty()) != !left.empty() && !left.empty();
    if (news || outcome.rejected > 0)
      LogWarning("the receiver {} of logs: {}", name(), outcome.error);
    const Duration wait = std::max(RetryDelay(failures, RandomSeed()), outcome.retry_after);
    if (!left.empty() && !Pause(wait)) return false;
  }
  return true;
}

void LogForwarder::Advance(const Batch& batch) {
  for (const ForwardLine& line : batch.lines) bytes_ += line.text.size();
  for (const auto& [log, offset] : batch.reaches) {
    const auto job = jobs_.find(log.first);
    if (job == jobs_.end() || job->second.offsets[log.second] == offset) continue;
    job->second.offsets[log.second] = offset;
    job->second.changed = true;
  }
  for (const std::string& id : batch.finished) {
    const Status forgotten = Forget(id);
    if (!forgotten.ok())
      LogWarning("that the log of {} was forwarded cannot be stored: {}", id, forgotten.message());
    jobs_.erase(id);
  }
  count_ = jobs_.size();
}

// What was sent since is sent again after a kill.
void LogForwarder::Save(bool all) {
  const TimePoint now = options_.clock->Now();
  if (!all && now - saved_ < kSaveEvery) return;
  saved_ = now;
  std::vector<controller::RecordChange> changes;
  std::vector<Job*> stored;
  for (auto& [id, job] : jobs_) {
    if (!job.changed || changes.size() >= kChangesAtOnce) continue;
    json::object body;
    for (const auto& [key, offset] : job.offsets) {
      const std::string name = rendezvous::LogFileName(key);
      body[name.substr(0, name.rfind('.'))] = offset;
    }
    changes.push_back({kKind, KeyOf(name(), id), std::move(body)});
    stored.push_back(&job);
  }
  if (position_ != saved_position_)
    changes.push_back({kKind, KeyOf(name(), ""), json::object{{"position", position_}}});
  if (changes.empty()) return;
  const auto saved = options_.store->records().Apply(changes, options_.clock->Wall());
  if (!saved.ok())
    return LogWarning("how far logs were forwarded to {} cannot be stored: {}", name(),
                      saved.status().message());
  saved_position_ = position_;
  for (Job* const job : stored) job->changed = false;
}

}  // namespace shoal::api
