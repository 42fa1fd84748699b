#include "engine/slurm/slurm_job.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>
#include <utility>

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/slurm/cell_placement.h"
#include "engine/tasks/job_files.h"

namespace shoal::engine::slurm {
namespace {

namespace fs = std::filesystem;

bool Runs(TaskPhase phase) { return phase == TaskPhase::kStarting || phase == TaskPhase::kRunning; }

// Large tasks are placed first.
bool BeforeInSize(const DesiredTask& a, const DesiredTask& b) {
  const auto rank = [](const DesiredTask& task) {
    const job::Resources& want = task.resources;
    return std::make_tuple(task.kind() != TaskKind::kCoordinator, -want.gpu, -want.cpu,
                           -want.memory_bytes);
  };
  return rank(a) < rank(b);
}

}  // namespace

Result<std::unique_ptr<SlurmJob>> SlurmJob::Make(const std::string& id, const std::string& dir) {
  if (dir.empty() || dir[0] != '/')
    return InvalidArgument("job " + id + ": its directory must be an absolute path: got \"" + dir +
                           "\"");
  std::unique_ptr<SlurmJob> job(new SlurmJob(id, dir));
  const FileAccessAs owner(job->owner_);
  TRY(MakeDirectories(EngineDir(dir), 0700));
  job->RemoveRecords();
  return job;
}

Result<std::unique_ptr<SlurmJob>> SlurmJob::Find(const std::string& id, const std::string& dir) {
  std::unique_ptr<SlurmJob> job(new SlurmJob(id, dir));
  const FileAccessAs owner(job->owner_);
  TRY_ASSIGN(job->desired_state_, ReadDesiredState(dir));
  if (job->desired_state_.job_id != id)
    return DataLoss(DesiredStatePath(dir).string() + " is of the job " +
                    job->desired_state_.job_id);
  for (const AgentTask& task : job->desired_state_.tasks)
    job->revisions_[{task.task.role, task.task.index}] = task.revision;
  job->allocation_ = ReadAllocation(dir);
  (void)job->ReadEvents();
  return job;
}

Status SlurmJob::WriteDesired(const DesiredJob& desired, const std::vector<CellPlan>& plan,
                              DesiredState rest) {
  rest.job_id = id_;
  rest.revision = desired_state_.revision + 1;
  std::set<Key> before;
  for (const AgentTask& task : desired_state_.tasks)
    before.emplace(task.task.role, task.task.index);
  std::vector<DesiredTask> tasks = desired.tasks;
  std::stable_sort(tasks.begin(), tasks.end(), BeforeInSize);
  for (DesiredTask& task : tasks) {
    const Key key{task.role, task.index};
    const auto [revision, fresh] = revisions_.try_emplace(key, 0);
    if (!fresh && !before.contains(key)) ++revision->second;
    AgentTask ordered{std::move(task), revision->second};
    if (const CellShare* share = ShareOf(plan, key.first)) {
      ordered.per_cell = share->per_cell;
      ordered.beside = share->beside;
      ordered.component = share->component;
    }
    rest.tasks.push_back(std::move(ordered));
  }
  desired_state_ = std::move(rest);
  const FileAccessAs owner(owner_);
  return WriteDesiredState(dir_, desired_state_);
}

Status SlurmJob::WriteStop(std::chrono::milliseconds grace) {
  const FileAccessAs owner(owner_);
  desired_state_.stop = true;
  desired_state_.grace = grace;
  desired_state_.tasks.clear();
  ++desired_state_.revision;
  return WriteDesiredState(dir_, desired_state_);
}

Status SlurmJob::StoreScript(const std::string& script) const {
  const FileAccessAs owner(owner_);
  return WriteFileAtomically(BatchScriptPath(dir_), script, 0600, false);
}

Result<std::string> SlurmJob::Script() const {
  const FileAccessAs owner(owner_);
  constexpr size_t kMaxFile = 1 << 20;
  return ReadFile(BatchScriptPath(dir_), kMaxFile);
}

Status SlurmJob::RecordSubmission(const Allocation& allocation) {
  const FileAccessAs owner(owner_);
  TRY(RecordGrant(allocation));
  return WriteAllocation(dir_, allocation);
}

Status SlurmJob::RecordGrant(const Allocation& allocation) {
  allocation_ = allocation;
  looks_without_ = looks_delayed_ = looks_headless_ = looks_torn_ = 0;
  return Status::Ok();
}

std::vector<TaskEvent> SlurmJob::ReadEvents() {
  const FileAccessAs owner(owner_);
  std::vector<TaskEvent> events;
  auto lines = reader_.Read();
  if (!lines.ok()) {
    LogWarning("job {}: {}", id_, lines.status().message());
    return events;
  }
  for (AgentEvent& line : *lines) {
    if (line.kind == EventKind::kAgentStarted) {
      begun_ = true;
      closed_ = new_allocation_requested_ = false;
      head_ = line.node;
    }
    if (line.kind == EventKind::kAgentExited) closed_ = true;
    if (line.kind == EventKind::kNeedsNewAllocation) new_allocation_requested_ = true;
    if (line.kind != EventKind::kTask) continue;
    Seen& seen = seen_[{line.event.role, line.event.index}];
    seen = {line.event.incarnation, line.event.phase, line.node};
    line.event.job_id = id_;
    events.push_back(std::move(line.event));
  }
  return events;
}

TaskEvent SlurmJob::CoordinatorEvent(TaskPhase phase, const std::string& reason) const {
  TaskEvent event{id_, kCoordinatorRole, 0, 0, phase, {}};
  const auto seen = seen_.find({kCoordinatorRole, 0});
  if (seen != seen_.end()) event.incarnation = seen->second.incarnation;
  event.end.reason = reason;
  return event;
}

std::vector<TaskEvent> SlurmJob::ApplyQueueState(const QueuedJob* job, TimePoint /*now*/) {
  if (job == nullptr || !IsActive(job->state)) {
    ++looks_without_;
    return {};
  }
  looks_without_ = 0;
  looks_torn_ = job->torn || is_torn() ? looks_torn_ + 1 : 0;
  if (is_torn()) return {};
  const bool lost = job->batch_host == head_ && HasLostBatchNode(*job);
  looks_headless_ = lost ? looks_headless_ + 1 : 0;
  const bool suspended = IsSuspended(job->state);
  if (suspended != std::exchange(suspended_, suspended)) {
    TaskEvent event = CoordinatorEvent(
        TaskPhase::kRunning,
        suspended ? "Slurm has suspended the job (scontrol suspend)" : "Slurm has resumed the job");
    event.stopped = suspended;
    return {event};
  }
  if (!IsPending(job->state)) {
    waits_.clear();
    looks_delayed_ = 0;
    return {};
  }
  if (begun_ && job->reason == "BeginTime") ++looks_delayed_;
  const std::string why = DescribeWait(*job);
  if (why == waits_) return {};
  waits_ = why;
  return {CoordinatorEvent(TaskPhase::kStarting, why)};
}

std::vector<TaskEvent> SlurmJob::MarkEnded(const std::string& reason) {
  over_ = true;
  for (auto& [key, seen] : seen_) {
    if (Runs(seen.phase)) seen.phase = TaskPhase::kLost;
  }
  return {CoordinatorEvent(TaskPhase::kRefused, reason)};
}

std::vector<TaskEvent> SlurmJob::EndRemaining() {
  std::vector<TaskEvent> events;
  for (auto& [key, seen] : seen_) {
    if (!Runs(seen.phase)) continue;
    seen.phase = TaskPhase::kEnded;
    TaskEvent event{id_, key.first, key.second, seen.incarnation, seen.phase, {}};
    event.end.reason = "was stopped with its allocation";
    events.push_back(std::move(event));
  }
  return events;
}

void SlurmJob::RemoveRecords() const {
  const FileAccessAs owner(owner_);
  std::error_code error;
  for (const fs::path& path :
       {DesiredStatePath(dir_), AgentEventsPath(dir_), AllocationPath(dir_), BatchScriptPath(dir_)})
    fs::remove(path, error);
  for (fs::directory_iterator it(EngineDir(dir_), error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->path().filename().string().starts_with("step-")) fs::remove(it->path(), ignored);
  }
}

std::vector<TaskStatus> SlurmJob::List() const {
  std::vector<TaskStatus> list;
  for (const AgentTask& ordered : desired_state_.tasks) {
    TaskStatus status{ordered.task.role, ordered.task.index, 0, TaskPhase::kStarting, 0};
    const auto seen = seen_.find({status.role, status.index});
    if (seen != seen_.end()) {
      status.incarnation = seen->second.incarnation;
      status.phase = seen->second.phase;
    }
    list.push_back(std::move(status));
  }
  return list;
}

SlurmJob::Location SlurmJob::LocationOf(const std::string& role, int index) const {
  const auto seen = seen_.find({role, index});
  if (seen == seen_.end() || seen->second.phase != TaskPhase::kRunning) return {};
  Location where{seen->second.node};
  for (const AgentTask& ordered : desired_state_.tasks) {
    if (ordered.task.role == role && ordered.task.index == index)
      where.component = ordered.component;
  }
  return where;
}

}  // namespace shoal::engine::slurm
