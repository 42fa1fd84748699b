// The coordinator's rules as a pure state machine: events in, actions out. No I/O, no clock, no
// randomness; time is handed in as milliseconds since the job's start.
//
//   launchers, controllers, timers ──Event──▶ CoordinatorCore ──Action──▶ coordinator.cc
//                                                  │ JournalRecord (in kRecord) ──▶ journal
//
// The state is the sum of the records: Restore with what a journal holds gives the same core. Each
// rule is a class of its own beside this one; all share CoreState (core_state.h). This class passes
// events on, applies records and computes the next deadline. docs/design/task-lifecycle.md has the
// lifecycle.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "framework/cluster.h"
#include "job/spec/job.h"
#include "rendezvous/lifecycle/attempt_ends.h"
#include "rendezvous/lifecycle/controller_presence.h"
#include "rendezvous/lifecycle/core_events.h"
#include "rendezvous/lifecycle/core_state.h"
#include "rendezvous/lifecycle/group_restart.h"
#include "rendezvous/lifecycle/host_exclusions.h"
#include "rendezvous/lifecycle/membership.h"
#include "rendezvous/lifecycle/program_starter.h"
#include "rendezvous/lifecycle/restart_policy.h"
#include "rendezvous/lifecycle/role_scaling.h"
#include "rendezvous/lifecycle/stall_detector.h"
#include "rendezvous/lifecycle/stop_policy.h"
#include "rendezvous/lifecycle/success_policy.h"

namespace shoal::rendezvous {

// Not thread-safe, not copyable. Lifecycle: construct, Restore (optional), Begin, then Handle until
// kExit.
class CoordinatorCore {
 public:
  // `job` was validated.
  explicit CoordinatorCore(job::Job job, CoreLimits limits = {});

  // Applies the records of an earlier coordinator. Once, before Begin. DataLoss if they do not fit
  // the job.
  Status Restore(const std::vector<JournalRecord>& records);
  // Starts, or goes on after Restore. `resumes`: how often the job was to be resumed; a suspended
  // job goes on if that is more often than its records say.
  std::vector<Action> Begin(Millis now, int resumes = 0);
  // O(1) for LauncherHeartbeat and, until all tasks have joined, for LauncherJoined; O(tasks) when
  // something ends.
  std::vector<Action> Handle(const Event& event, Millis now);
  // When Handle(Tick) has something to do; none: never. May be early.
  std::optional<Millis> NextDeadline() const { return next_; }

  const job::Job& job() const { return state_.job; }
  int task_count() const { return state_.tasks.size(); }
  const job::Role& role_of(int task) const { return state_.tasks.role_of(task); }
  const TaskTable& tasks() const { return state_.tasks; }
  std::string NameOf(int task) const { return state_.tasks.NameOf(task); }  // "worker 3"
  std::optional<int> Find(const std::string& role, int index) const {
    return state_.tasks.Find(role, index);
  }
  int64_t generation() const { return state_.generation; }
  framework::ClusterDescription Cluster() const { return state_.Cluster(); }  // O(tasks)
  // Changes with everything that Cluster tells besides addresses: which tasks have ended well or
  // are gone, and whether the job is ending.
  int64_t ends_version() const { return state_.ends_version; }
  std::optional<int> TaskOf(MemberId member) const { return state_.tasks.TaskOf(member); }
  MemberId MemberOf(int task) const { return state_.tasks.MemberOf(task); }  // 0: not connected
  job::TaskState state_of(int task) const { return state_.tasks[task].state; }
  int attempt_of(int task) const { return state_.tasks[task].attempt; }
  // 0: the task has no port of this name.
  uint16_t PortOf(int task, const std::string& port) const {
    return state_.tasks.PortOf(task, port);
  }
  job::JobState job_state() const { return state_.job_state; }
  const std::optional<Verdict>& verdict() const { return state_.verdict; }
  int64_t last_seq() const { return state_.seq; }
  bool has_controller() const { return presence_.connected(); }

 private:
  template <typename One>
  void Dispatch(const One& event);
  void On(const Tick& event);
  // Everything that follows from a change of tasks: starts, drains, success, restarts, the verdict.
  void Reevaluate();
  void CheckJobDeadlines();
  void CheckSlots();
  void RecomputeDeadline();
  void ConsiderDeadline(int number);
  void ConsiderDeadline(std::optional<Millis> when);

  // core_apply.cc: the only place where a record changes the state, live and from the journal.
  Status Apply(const JournalRecord& record);
  void ApplyToJob(const JournalRecord& record);
  Status ApplyToTask(const JournalRecord& record);
  Status ChangeTask(const JournalRecord& record, Task* task);
  Status ApplyLease(const JournalRecord& record, Task* task);
  void ApplyStart(const JournalRecord& record, Task* task);
  void ApplyEnd(const JournalRecord& record, Task* task);
  void ApplyResumed(const JournalRecord& record);
  bool RunsAgainAfterResume(const Task& task) const;

  CoreState state_;
  HostExclusions exclusions_{&state_};
  RestartPolicy policy_{&state_};
  GroupRestart group_{&state_};
  ProgramStarter starter_{&state_, &group_, &exclusions_};
  StallDetector stall_{&state_, &group_, &policy_};
  AttemptEnds ends_{&state_, &policy_, &exclusions_, &group_, &starter_, &membership_};
  Membership membership_{&state_, &exclusions_, &group_, &starter_, &stall_, &ends_};
  StopPolicy stop_{&state_, &membership_};
  RoleScaling scaling_{&state_, &group_, &exclusions_, &stop_};
  SuccessPolicy success_{&state_};
  ControllerPresence presence_{&state_};
  std::optional<Millis> next_;  // never later than it must be; earlier after deadlines moved on
};

}  // namespace shoal::rendezvous
