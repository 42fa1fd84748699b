#include "engine/local/local_job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>

#include "base/log.h"
#include "base/open_file_limit.h"
#include "engine/local/isolated_dirs.h"
#include "engine/process/local_host.h"
#include "engine/process/spawn.h"
#include "engine/process/task_process.h"
#include "engine/tasks/job_files.h"
#include "host/process/process_usage.h"

namespace shoal::engine {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr size_t kLogTail = 4096;
constexpr milliseconds kEndStep{
    5};  // interval of polls for the end of a process that is not our child
constexpr int kEndReads = 20;
constexpr int kStartsAtOnce = 16;

// The value of kTaskVariable, parsed.
struct TaskName {
  std::string role;
  int index = 0;
  int incarnation = 0;
};

std::optional<TaskName> ParseTaskVariable(const std::string& text) {
  const size_t second = text.rfind('/');
  const size_t first =
      second == std::string::npos || second == 0 ? std::string::npos : text.rfind('/', second - 1);
  if (first == std::string::npos) return std::nullopt;
  TaskName name{text.substr(0, first), 0, 0};
  const auto number = [&](size_t begin, size_t end, int* out) {
    auto [rest, error] = std::from_chars(text.data() + begin, text.data() + end, *out);
    return error == std::errc() && rest == text.data() + end && *out >= 0;
  };
  if (!number(first + 1, second, &name.index)) return std::nullopt;
  if (!number(second + 1, text.size(), &name.incarnation)) return std::nullopt;
  if (!CheckName("role", name.role).ok()) return std::nullopt;
  return name;
}

// A task needs one descriptor, and a few more while it starts. ResourceExhausted where no process
// of a job, which inherits the limit, could start its program.
Status AllowTasks(size_t tasks) {
  constexpr size_t kOthers = 256;
  constexpr size_t kLeast = 48;  // a launcher has about 24
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return Status::Ok();
  if (2 * tasks + kOthers > files.rlim_cur) RaiseOpenFiles();
  if (files.rlim_max >= kLeast) return Status::Ok();
  return ResourceExhausted("the limit of open files is " + std::to_string(files.rlim_max) +
                           ", and the processes of a job need " + std::to_string(kLeast) +
                           "; raise `ulimit -n`");
}

// The launcher or coordinator itself among the processes with its variables: its init, a forked
// copy and child of it, has them too.
std::map<std::string, pid_t> RunningTasks(const std::string& job_id) {
  std::map<pid_t, std::string> named;
  for (pid_t pid : host::ProcessesWithVariable(kJobVariable, job_id)) {
    auto name = host::ReadProcessVariable(pid, kTaskVariable);
    if (name.ok()) named.emplace(pid, *name);
  }
  std::map<std::string, pid_t> tasks;
  for (const auto& [pid, name] : named) {
    auto stat = host::ReadProcessStat(pid);
    if (!stat.ok()) continue;
    auto parent = named.find(stat->parent);
    if (parent == named.end() || parent->second != name) tasks.emplace(name, pid);
  }
  return tasks;
}

}  // namespace

Result<std::unique_ptr<LocalJob>> LocalJob::Make(const std::string& id, const std::string& dir,
                                                 const LocalEngineOptions* options, int epoll) {
  if (dir.empty() || dir[0] != '/')
    return InvalidArgument("job " + id + ": its directory must be an absolute path: got \"" + dir +
                           "\"");
  std::unique_ptr<LocalJob> job(new LocalJob(id, dir, options, epoll));
  {
    const FileAccessAs owner(job->owner_);
    TRY(MakeDirectories(EngineDir(dir), 0700));
  }
  TRY(job->Lock());
  return job;
}

Status LocalJob::Lock() {
  TRY_ASSIGN(lock_, JobLock::Take(dir_));
  if (lock_.held()) return Status::Ok();
  return FailedPrecondition("job " + id_ +
                            " is already run by another shoal process on this machine");
}

Result<std::unique_ptr<LocalJob>> LocalJob::Find(const std::string& id, const std::string& dir,
                                                 const LocalEngineOptions* options, int epoll) {
  std::unique_ptr<LocalJob> job(new LocalJob(id, dir, options, epoll));
  auto records = ReadRecords(dir);
  if (!records.ok() && records.status().code() != Code::kNotFound)
    LogWarning("job {}: {}; adopting by the running processes", id, records.status().message());
  const TimePoint now = options->clock->Now();
  const auto put = [&](const DesiredTask& desired) -> Task& {
    const Key key{desired.role, desired.index};
    auto [it, fresh] = job->tasks_.try_emplace(key);
    if (fresh) job->order_.push_back(key);
    if (fresh) it->second.desired = desired;
    return it->second;
  };
  if (records.ok() && records->job_id == id) {
    (void)AllowTasks(records->tasks.size());  // they have started
    if (!job->owner_)
      job->group_bases_.assign(records->group_bases.begin(), records->group_bases.end());
    for (const TaskRecord& record : records->tasks) {
      Task& task = put(record.desired);
      task.incarnation = record.incarnation;
      task.phase = record.phase;
      task.pid = static_cast<pid_t>(record.pid);
      task.start_ticks = record.start_ticks;
      job->AdoptRunning(&task, now);
    }
  }
  // Tasks without a record: started just before the earlier engine ended.
  for (const auto& [variable, pid] : RunningTasks(id)) {
    const auto name = ParseTaskVariable(variable);
    if (!name || !job->MayBeOurs(pid)) continue;
    DesiredTask unknown;
    unknown.role = name->role;
    unknown.index = name->index;
    unknown.restart_if_lost = false;  // its command is not known
    Task& task = put(unknown);
    if (task.pidfd.valid()) continue;
    auto stat = host::ReadProcessStat(pid);
    if (!stat.ok()) continue;
    task.incarnation = std::max(task.incarnation, name->incarnation);
    task.pid = pid;
    task.start_ticks = stat->start_ticks;
    task.phase = TaskPhase::kRunning;
    job->AdoptRunning(&task, now);
  }
  if (!job->AnyAlive()) return std::unique_ptr<LocalJob>();
  for (const auto& [key, task] : job->tasks_) job->incarnations_[key] = task.incarnation + 1;
  if (const Status locked = job->Lock(); !locked.ok())
    LogInfo("{}; it is only watched", locked.message());
  return job;
}

bool LocalJob::MayBeOurs(pid_t pid) const {
  if (!owner_) return true;
  const Result<uid_t> user = host::UserOfProcess(pid);
  return user.ok() && *user == owner_->uid;
}

// A task that was recorded as running: it still runs, or was lost in the meantime.
void LocalJob::AdoptRunning(Task* task, TimePoint now) {
  if (task->phase != TaskPhase::kRunning && task->phase != TaskPhase::kStarting &&
      task->phase != TaskPhase::kLost) {
    return;
  }
  task->started = now;
  auto pidfd = OpenProcess(task->pid, task->start_ticks);
  // Asked after the pidfd is open, which belongs to this process for good.
  if (!pidfd.ok() || !MayBeOurs(task->pid)) {
    task->phase = TaskPhase::kLost;
    if (task->desired.restart_if_lost) task->start_at = now;
    return;
  }
  task->phase = TaskPhase::kRunning;
  task->start_at.reset();
  task->pidfd = std::move(*pidfd);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  (void)::epoll_ctl(epoll_, EPOLL_CTL_ADD, task->pidfd.get(), &event);
}

Status LocalJob::Apply(const DesiredJob& desired) {
  if (!lock_.held()) {
    return FailedPrecondition("job " + id_ +
                              " is already run by another shoal process on this machine");
  }
  TRY(AllowTasks(desired.tasks.size()));
  if (options_->no_shared_filesystem) {
    const FileAccessAs owner(owner_);
    TRY(CreateIsolatedDirs(desired));
  }
  const TimePoint now = options_->clock->Now();
  const auto want = [&](const DesiredTask& wish, const TaskKey& key, Task* task, bool fresh) {
    if (fresh) order_.push_back(key);
    // Was removed and has ended, but is still in the table: treat it as new.
    const bool again = !fresh && !task->listed && !task->pidfd.valid();
    task->listed = true;
    task->desired = wish;
    if (fresh || again || task->phase == TaskPhase::kRefused) task->ResetForStart(now);
  };
  MatchTasks(desired.tasks, &tasks_, want, [&](Task* task) {
    task->listed = false;
    RequestStop(task, now + options_->remove_grace);
  });
  dirty_ = true;
  return Status::Ok();
}

void LocalJob::RequestStop(Task* task, TimePoint kill_at) {
  task->start_at.reset();
  if (!task->pidfd.valid()) return;
  if (!task->stop_requested) (void)SignalProcess(task->pidfd.get(), SIGTERM);
  task->stop_requested = true;
  task->kill_at = kill_at;
}

void LocalJob::Stop(TimePoint kill_at) {
  stopping_ = true;
  for (auto& [key, task] : tasks_) RequestStop(&task, kill_at);
}

std::optional<TimePoint> LocalJob::Step(TimePoint now, std::vector<TaskEvent>* events) {
  starts_left_ = kStartsAtOnce;
  std::optional<TimePoint> next;
  const auto consider = [&](const std::optional<TimePoint>& due) {
    if (due && (!next || *due < *next)) next = due;
  };
  std::erase_if(order_, [&](const Key& key) {
    Task& task = tasks_.at(key);
    if (StepTask(key, &task, now, events)) {
      tasks_.erase(key);
      dirty_ = true;
      return true;
    }
    consider(task.start_at);
    consider(task.kill_at);
    consider(task.end_due);
    return false;
  });
  // The rest starts in the next Step. Tasks without a record are found by their environment.
  if (starts_left_ == 0) return now;
  if (dirty_ && lock_.held()) Save();
  return next;
}

bool LocalJob::StepTask(const Key& key, Task* task, TimePoint now, std::vector<TaskEvent>* events) {
  if (task->pidfd.valid()) ApplyEnd(key, task, now, events);
  if (task->pidfd.valid() && task->kill_at && *task->kill_at <= now) {
    (void)SignalProcess(task->pidfd.get(), SIGKILL);
    task->kill_at.reset();
  }
  const bool due = task->start_at && *task->start_at <= now;
  if (due && task->listed && !stopping_ && starts_left_ > 0 && lock_.held()) {
    --starts_left_;
    Start(key, task, now, events);
  }
  return !task->listed && !task->pidfd.valid();
}

bool LocalJob::ApplyEnd(const Key& key, Task* task, TimePoint now, std::vector<TaskEvent>* events) {
  int wait_status = -1;
  if (!ProcessEnded(task->pidfd.get())) return false;
  if (!ReadEnd(task->pidfd.get(), task->pid, task->start_ticks, &wait_status) &&
      ++task->end_reads < kEndReads) {
    task->end_due = now + kEndStep;
    return false;
  }
  task->pidfd.Reset();  // epoll forgets a closed descriptor
  task->end_due.reset();
  task->end_reads = 0;
  task->pid = 0;
  dirty_ = true;
  TaskEnd end = DecodeWaitStatus(wait_status);
  task->ApplyEnd({options_->restart, task->desired.restart_if_lost, stopping_}, now, &end,
                 [&] { return ReadLogTail(key); });
  AddEvent(key, *task, std::move(end), events);
  return true;
}

std::string LocalJob::ReadLogTail(const Key& key) const {
  const FileAccessAs owner(owner_);
  return ReadTail(TaskLogPath(dir_, key.first, key.second), kLogTail).value_or("");
}

Result<Spawned> LocalJob::SpawnTask(const Key& key, const Task& task) const {
  DesiredTask desired = task.desired;
  if (options_->no_shared_filesystem) {
    const FileAccessAs owner(owner_);
    TRY_ASSIGN(desired, IsolateTask(dir_, task.desired, task.incarnation));
  } else {
    TRY(CheckHostNotExcluded("local", task.desired));
  }
  std::vector<std::string> environment = options_->environment;
  if (std::string entry = OpenFilesEntry(); !entry.empty()) environment.push_back(std::move(entry));
  if (owner_) environment = EnvironmentOf(*owner_, dir_, std::move(environment));
  SpawnSpec spec = MakeSpawnSpec({id_, dir_, key.first, key.second, task.incarnation}, desired,
                                 std::move(environment));
  spec.user = owner_;
  return Spawn(spec);
}

void LocalJob::Start(const Key& key, Task* task, TimePoint now, std::vector<TaskEvent>* events) {
  task->start_at.reset();
  task->incarnation = incarnations_[key]++;
  task->phase = TaskPhase::kStarting;
  task->started = now;
  dirty_ = true;
  AddEvent(key, *task, {}, events);
  auto spawned = SpawnTask(key, *task);
  if (!spawned.ok()) {
    TaskEnd end;
    end.reason = spawned.status().message();
    task->phase = TaskPhase::kRefused;
    if (spawned.status().retryable())
      task->ApplyLoss(options_->restart, now, &end, [&] { return ReadLogTail(key); });
    return AddEvent(key, *task, std::move(end), events);
  }
  task->pid = spawned->pid;
  task->start_ticks = spawned->start_ticks;
  task->pidfd = std::move(spawned->pidfd);
  task->phase = TaskPhase::kRunning;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  (void)::epoll_ctl(epoll_, EPOLL_CTL_ADD, task->pidfd.get(), &event);
  AddEvent(key, *task, {}, events);
}

void LocalJob::AddEvent(const Key& key, const Task& task, TaskEnd end,
                        std::vector<TaskEvent>* events) const {
  events->push_back({id_, key.first, key.second, task.incarnation, task.phase, std::move(end)});
}

std::vector<TaskStatus> LocalJob::List() const {
  std::vector<TaskStatus> list;
  for (const Key& key : order_) {
    const Task& task = tasks_.at(key);
    list.push_back({key.first, key.second, task.incarnation, task.phase, task.pid});
  }
  return list;
}

bool LocalJob::AnyAlive() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const auto& entry) { return entry.second.pidfd.valid(); });
}

void LocalJob::SetGroupBases(const std::vector<fs::path>& bases) { group_bases_ = bases; }

void LocalJob::Save() {
  JobRecords records;
  records.job_id = id_;
  for (const fs::path& base : group_bases_) records.group_bases.push_back(base.string());
  for (const Key& key : order_) {
    const Task& task = tasks_.at(key);
    records.tasks.push_back(
        {task.desired, task.incarnation, task.phase, task.pid, task.start_ticks});
  }
  // Not an error: without records the job is found by its processes' environment.
  if (Status saved = WriteRecords(dir_, records); !saved.ok())
    LogWarning("job {}: its records cannot be written: {}", id_, saved.message());
  dirty_ = false;
}

void LocalJob::RemoveRecords() {
  const FileAccessAs owner(owner_);
  if (!lock_.held()) return;
  ::unlink((EngineDir(dir_) / "tasks.json").c_str());
  lock_.Remove();
  if (options_->no_shared_filesystem) RemoveIsolatedDirs(dir_);
}

}  // namespace shoal::engine
