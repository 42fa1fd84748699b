#include "controller/groups/job_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <future>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "controller/groups/objective.h"
#include "controller/series/series_files.h"

namespace shoal::controller {
namespace {

constexpr int kGroupPage = 100;
constexpr auto kExpireInterval = std::chrono::minutes(1);
constexpr size_t kMaxRefusals = 100;  // that are kept with their reasons
constexpr size_t kMostRungs = 30;

std::optional<size_t> IndexOf(const JobLabels& labels) {
  const auto found = labels.find(kMemberLabel);
  size_t index = 0;
  if (found == labels.end()) return std::nullopt;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return index;
}

bool IsTransient(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kResourceExhausted ||
         status.code() == Code::kAborted;
}

std::string ValuesText(const job::MatrixValues& values) {
  std::string text;
  for (const auto& [name, value] : values) text += (text.empty() ? "" : ", ") + name + "=" + value;
  return text;
}

}  // namespace

Result<GroupRecord> ReadGroup(Store* store, const std::string& id) {
  const Result<Record> record = store->records().Get(kGroupKind, id);
  if (record.status().code() == Code::kNotFound) return NotFound("there is no group " + id);
  TRY(record.status());
  return ParseGroup(id, record->body);
}

std::string DescribeEnd(const GroupRecord& group) {
  if (!group.stop_reason.empty()) return group.stop_reason;
  const size_t all = group.members.size();
  const size_t failed = group.Count(MemberState::kFailed) + group.Count(MemberState::kRefused);
  std::string text;
  if (failed > 0) text = fmt::format("{} of {} members failed", failed, all);
  if (const size_t cancelled = group.Count(MemberState::kCancelled); cancelled > 0)
    text +=
        fmt::format("{}{} of {} members were cancelled", text.empty() ? "" : ", ", cancelled, all);
  if (!group.has_sweep()) return text;
  const std::vector<MemberView> members = MembersOfGroup(group);
  if (members.empty() || !members.front().objective)
    return text + (text.empty() ? "" : "; ") + "no member has reported " +
           group.triggers.sweep.objective;
  const MemberView& best = members.front();
  return fmt::format("{}{}best: {} with {} {:.6g} ({})", text, text.empty() ? "" : "; ",
                     MemberId(group.id, best.index), group.triggers.sweep.objective,
                     *best.objective, ValuesText(best.values));
}

Result<std::unique_ptr<JobGroups>> JobGroups::Start(JobGroupsOptions options) {
  std::unique_ptr<JobGroups> groups(new JobGroups(std::move(options)));
  JobsObserver observer;
  observer.on_end = [raw = groups.get()](const std::string&, const JobRecord& job) {
    if (job::IsFinal(job.state) && job.labels.contains(kGroupLabel))
      raw->Post([raw, job] { raw->OnMemberEnd(job); });
  };
  groups->observation_ = groups->options_.supervisor->Observe(std::move(observer));
  TRY(groups->Load());
  groups->thread_ = std::thread([raw = groups.get()] { raw->Loop(); });
  return groups;
}

JobGroups::JobGroups(JobGroupsOptions options) : options_(std::move(options)) {}

JobGroups::~JobGroups() {
  observation_.reset();
  {
    const MutexLock lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status JobGroups::Load() {
  std::string after;
  do {
    TRY_ASSIGN(const RecordPage page,
               options_.store->records().List(kGroupKind, "", after, kGroupPage));
    for (const Record& record : page.records) {
      Result<GroupRecord> group = ParseGroup(record.key, record.body);
      if (!group.ok()) {
        LogWarning("group {}: its record cannot be read: {}", record.key, group.status().message());
      } else if (!job::IsFinal(group->state)) {
        Adopt(std::move(*group));
      }
    }
    after = page.next;
  } while (!after.empty());
  return Status::Ok();
}

// ---- The thread ---------------------------------------------------------------------------------

void JobGroups::Post(std::function<void()> task) {
  {
    const MutexLock lock(mu_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void JobGroups::Loop() {
  MutexLock lock(mu_);
  auto next = std::chrono::steady_clock::now();
  auto expire = next;
  while (!stopping_) {
    std::deque<std::function<void()>> tasks = std::exchange(tasks_, {});
    lock.unlock();
    for (const auto& task : tasks) task();
    if (std::chrono::steady_clock::now() >= next) {
      LookAtSweeps();
      next = std::chrono::steady_clock::now() + options_.tick;
    }
    for (auto& [id, active] : active_) Advance(&active);
    StoreDirty();
    if (std::chrono::steady_clock::now() >= expire) {
      Expire();
      for (auto& [id, active] : active_) CloseEnded(&active);
      expire = std::chrono::steady_clock::now() + kExpireInterval;
    }
    lock.lock();
    if (stopping_ || !tasks_.empty()) continue;
    changed_.wait_until(lock, active_.empty() ? expire : next);
  }
}

// Makes the group one of this thread. Members that ended without a server are counted.
void JobGroups::Adopt(GroupRecord group) {
  Active& active = active_[group.id];
  active.record = std::move(group);
  const GroupRecord& record = active.record;
  for (size_t i = 0; i < record.members.size(); ++i) {
    const MemberState state = record.member(i);
    if (state == MemberState::kUnfinished || state == MemberState::kStopped)
      active.unfinished.insert(i);
  }
  CloseEnded(&active);
  for (const size_t index : active.unfinished) {
    if (record.member(index) == MemberState::kStopped)
      StopMember(&active, index, "stopped by its sweep", false);
  }
}

// Counts members that have ended without a word of the supervisor, for example suspended ones that
// a command on the same machine has ended.
void JobGroups::CloseEnded(Active* active) {
  const std::set<size_t> unfinished = active->unfinished;
  for (const size_t index : unfinished) {
    const Result<JobRecord> job = options_.store->GetJob(MemberId(active->record.id, index));
    if (job.ok() && job::IsFinal(job->state)) CloseMember(active, index, job->state);
    if (job.status().code() == Code::kNotFound) CloseMember(active, index, JobState::kCancelled);
  }
}

Status JobGroups::Create(const GroupRecord& group) {
  TRY(options_.store->records()
          .Put(kGroupKind, group.id, ToJson(group), kAbsent, options_.clock->Wall())
          .status());
  Post([this, group] { Adopt(group); });
  return Status::Ok();
}

Status JobGroups::Stop(const std::string& id, const std::string& reason, bool now) {
  TRY(ReadGroup(options_.store, id).status());
  const auto done = std::make_shared<std::promise<void>>();
  auto stored = done->get_future();
  Post([this, id, reason, now, done] {
    const auto found = active_.find(id);
    if (found != active_.end()) {
      GroupRecord& record = found->second.record;
      if (record.stop_reason.empty()) record.stop_reason = reason;
      record.stop_now |= now;
      found->second.stopped.clear();
      found->second.dirty = true;
      StoreDirty();
    }
    done->set_value();
  });
  constexpr auto kPatience = std::chrono::seconds(30);
  if (stored.wait_for(kPatience) != std::future_status::ready)
    return Unavailable("the group is busy; try again");
  return Status::Ok();
}

Status JobGroups::Remove(const std::string& id) {
  TRY_ASSIGN(const GroupRecord group, ReadGroup(options_.store, id));
  if (!job::IsFinal(group.state))
    return FailedPrecondition("group " + id + " has not ended; stop it first");
  return options_.store->records().Delete(kGroupKind, id, kAnyVersion, options_.clock->Wall());
}

// Deletes the records of groups that ended limits.keep_records ago, as those of their jobs.
void JobGroups::Expire() {
  std::string after;
  do {
    const auto page = options_.store->records().List(kGroupKind, "", after, kGroupPage);
    if (!page.ok()) return;
    for (const Record& record : page->records) {
      const Result<GroupRecord> group = ParseGroup(record.key, record.body);
      if (!group.ok() || !job::IsFinal(group->state) || group->keep.count() == 0) continue;
      if (options_.clock->Wall() - group->ended < group->keep) continue;
      if (const Status gone = Remove(group->id); !gone.ok())
        LogWarning("group {}: not removed: {}", group->id, gone.message());
    }
    after = page->next;
  } while (!after.empty());
}

void JobGroups::StoreDirty() {
  for (auto it = active_.begin(); it != active_.end();) {
    Active& active = it->second;
    bool ended = job::IsFinal(active.record.state);
    if (active.dirty || ended) {
      const Status stored = options_.store->records()
                                .Put(kGroupKind, it->first, ToJson(active.record), kAnyVersion,
                                     options_.clock->Wall())
                                .status();
      if (stored.ok()) active.dirty = false;
      if (!stored.ok()) {
        ended = false;  // tried again with the next tick
        if (stored.code() != Code::kAborted)
          LogWarning("group {}: not stored: {}", it->first, stored.message());
      }
    }
    if (ended) {
      options_.supervisor->OnGroupEnd(it->first);
      std::error_code ignored;
      // A scheduled run's files are those of the schedule.
      const std::filesystem::path tree = active.record.source.tree;
      if (tree.parent_path() == kGroupFolder)
        std::filesystem::remove_all(options_.home.root() / tree, ignored);
      it = active_.erase(it);
    } else {
      ++it;
    }
  }
}

// ---- Members ------------------------------------------------------------------------------------

void JobGroups::SetMember(Active* active, size_t index, MemberState state) {
  active->record.members[index] = static_cast<char>(state);
  active->dirty = true;
}

void JobGroups::OnMemberEnd(const JobRecord& job) {
  const auto found = active_.find(job.labels.at(kGroupLabel));
  const auto index = IndexOf(job.labels);
  if (found == active_.end() || !index || *index >= found->second.record.members.size()) return;
  if (found->second.record.member(*index) == MemberState::kWaiting) return;  // ended at once
  CloseMember(&found->second, *index, job.state);
}

void JobGroups::CloseMember(Active* active, size_t index, JobState state) {
  GroupRecord& record = active->record;
  if (active->unfinished.erase(index) == 0) return;
  if (record.has_sweep()) {
    const auto dir = SeriesDir(options_.home.job_dir(MemberId(record.id, index)));
    const auto objective = ReadObjective(dir, record.triggers.sweep, kMostRungs);
    if (objective.ok() && objective->last) record.values[index] = *objective->last;
    // A late rung counts for those that come after it.
    for (size_t i = 0; objective.ok() && i < objective->rungs.size(); ++i) {
      if (record.rungs.size() <= i) record.rungs.emplace_back();
      record.rungs[i].emplace(index, objective->rungs[i]);
    }
  }
  const bool early = record.member(index) == MemberState::kStopped;
  MemberState now = MemberState::kCancelled;
  if (state == JobState::kSucceeded) now = MemberState::kSucceeded;
  if (state == JobState::kFailed) now = MemberState::kFailed;
  if (early && state != JobState::kSucceeded) now = MemberState::kStopped;
  SetMember(active, index, now);
}

void JobGroups::Advance(Active* active) {
  GroupRecord& record = active->record;
  if (job::IsFinal(record.state)) return;
  const bool stops = !record.stop_reason.empty();
  while (!stops && active->unfinished.size() < record.limit()) {
    if (!SubmitNext(active)) break;
  }
  if (stops) {
    const std::set<size_t> unfinished = active->unfinished;
    for (const size_t index : unfinished)
      StopMember(active, index, record.stop_reason, record.stop_now);
  }
  const bool all = record.Count(MemberState::kWaiting) == 0;
  if (active->unfinished.empty() && (all || stops)) Finish(active);
}

// False if there is none, or if it must be tried again later.
bool JobGroups::SubmitNext(Active* active) {
  GroupRecord& record = active->record;
  const size_t index = record.members.find(static_cast<char>(MemberState::kWaiting));
  if (index == std::string::npos) return false;
  const auto submit = [&]() -> Status {
    TRY_ASSIGN(MadeJob made, options_.make(record.source, index));
    SubmitOptions options;
    options.engine = made.engine;
    options.team = record.source.team;
    options.user = record.source.user;
    options.labels = {{kGroupLabel, record.id}, {kMemberLabel, std::to_string(index)}};
    options.id = MemberId(record.id, index);
    options.work_dir = made.work_dir;
    options.validation = made.validation;
    return options_.supervisor->Submit(made.job, options).status();
  };
  // Known as unfinished before it can end.
  SetMember(active, index, MemberState::kUnfinished);
  active->unfinished.insert(index);
  const Status submitted = submit();
  if (submitted.ok()) return true;
  if (submitted.code() == Code::kAlreadyExists) {  // by an earlier server
    const Result<JobRecord> job = options_.store->GetJob(MemberId(record.id, index));
    if (job.ok() && job::IsFinal(job->state)) CloseMember(active, index, job->state);
    return true;
  }
  active->unfinished.erase(index);
  if (IsTransient(submitted)) {
    SetMember(active, index, MemberState::kWaiting);
    LogWarning("group {}: member {} is tried again: {}", record.id, index, submitted.message());
    return false;
  }
  SetMember(active, index, MemberState::kRefused);
  if (record.refusals.size() < kMaxRefusals) record.refusals[index] = submitted.message();
  return true;
}

void JobGroups::StopMember(Active* active, size_t index, const std::string& reason, bool now) {
  if (!active->stopped.insert(index).second) return;
  const std::string id = MemberId(active->record.id, index);
  const auto done = [id](const Status& accepted) {
    // One that has just ended tells it by itself.
    if (!accepted.ok()) Log(LogLevel::kInfo, "job {}: not stopped: {}", id, accepted.message());
  };
  if (now) {
    options_.supervisor->Kill(id, reason, done);
  } else {
    options_.supervisor->Drain(id, reason, done);
  }
}

void JobGroups::Finish(Active* active) {
  GroupRecord& record = active->record;
  const bool failed = record.Count(MemberState::kFailed) + record.Count(MemberState::kRefused) > 0;
  const bool any = record.Count(MemberState::kSucceeded) > 0;
  const bool cancelled = record.Count(MemberState::kCancelled) > 0;
  record.state = failed ? JobState::kFailed : JobState::kSucceeded;
  if (!failed && cancelled) record.state = JobState::kCancelled;
  // A sweep looks for one good member.
  if (record.has_sweep() && any) record.state = JobState::kSucceeded;
  if (!record.stop_reason.empty()) record.state = JobState::kCancelled;
  record.reason = DescribeEnd(record);
  record.ended = options_.clock->Wall();
  active->dirty = true;
}

// ---- Sweeps -------------------------------------------------------------------------------------

void JobGroups::LookAtSweeps() {
  for (auto& [id, active] : active_) {
    if (active.record.has_sweep() && active.record.stop_reason.empty()) LookAt(&active);
  }
}

void JobGroups::LookAt(Active* active) {
  GroupRecord& record = active->record;
  for (const size_t index : active->unfinished) {
    const auto dir = SeriesDir(options_.home.job_dir(MemberId(record.id, index)));
    const auto objective = ReadObjective(dir, record.triggers.sweep, kMostRungs);
    if (!objective.ok()) continue;  // it is told when the job's series are read
    if (objective->last && record.values[index] != *objective->last) {
      record.values[index] = *objective->last;
      active->dirty = true;
    }
    Judge(active, index, objective->rungs);
  }
}

// Records the rungs that the member has newly reached, and stops it at one whose best it is not
// among.
void JobGroups::Judge(Active* active, size_t index, const std::vector<double>& values) {
  GroupRecord& record = active->record;
  for (size_t rung = 0; rung < values.size(); ++rung) {
    if (record.rungs.size() <= rung) record.rungs.emplace_back();
    if (!record.rungs[rung].emplace(index, values[rung]).second) continue;
    active->dirty = true;
    if (record.member(index) == MemberState::kStopped) continue;
    if (GoesOn(record.rungs[rung], values[rung], record.triggers.sweep)) continue;
    SetMember(active, index, MemberState::kStopped);
    StopMember(active, index,
               fmt::format("stopped by its sweep: {} {:.6g} at rung {} is not among the best 1/{}",
                           record.triggers.sweep.objective, values[rung], rung + 1,
                           record.triggers.sweep.stop.reduction),
               false);
  }
}

}  // namespace shoal::controller
