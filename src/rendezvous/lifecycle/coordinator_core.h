// The coordinator's rules as a pure state machine: events in, actions out. No I/O, no clock, no
// randomness; time is handed in as milliseconds since the job's start.
//
//   launchers, controllers, timers ──Event──▶ CoordinatorCore ──Action──▶ coordinator.cc (the
//   shell)
//                                                  │ JournalRecord (in the action kRecord) ──▶
//                                                  journal
//
// The state is the sum of the records: Restore with what a journal holds gives the same core. The
// lifecycle is drawn in docs/design/task-lifecycle.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "framework/cluster.h"
#include "job/execution/policy.h"
#include "job/spec/job.h"
#include "rendezvous/lifecycle/core_events.h"

namespace shoal::rendezvous {

class CoordinatorCore {
 public:
  // `job` was validated.
  explicit CoordinatorCore(job::Job job, CoreLimits limits = {});

  // Applies the records of an earlier coordinator. Once, before Begin. DataLoss if they do not fit
  // the job.
  Status Restore(const std::vector<JournalRecord>& records);
  // Starts, or goes on after Restore; what was suspended goes on if it was to be resumed more often
  // than it was.
  std::vector<Action> Begin(Millis now, int resumes = 0);
  // O(1) for LauncherHeartbeat and, until all are there, for who joins; O(tasks) when something
  // ends.
  std::vector<Action> Handle(const Event& event, Millis now);
  // When Handle(Tick) has something to do; none: never. May be early.
  std::optional<Millis> NextDeadline() const;

  const job::Job& job() const { return job_; }
  int task_count() const { return static_cast<int>(tasks_.size()); }
  const job::Role& role_of(int task) const;
  int index_of(int task) const;
  std::string NameOf(int task) const;  // "worker 3"
  std::optional<int> Find(const std::string& role, int index) const;
  int64_t generation() const { return generation_; }
  framework::ClusterDescription Cluster() const;  // O(tasks)
  // Changes with who has ended well, who is there, and whether the job is ending.
  int64_t ends_version() const { return ends_version_; }
  std::optional<int> TaskOf(MemberId member) const;
  MemberId MemberOf(int task) const;  // 0: not connected
  job::TaskState state_of(int task) const;
  int attempt_of(int task) const;
  uint16_t PortOf(int task, const std::string& port) const;  // 0: it has none of this name
  job::JobState job_state() const { return job_state_; }
  const std::optional<Verdict>& verdict() const { return verdict_; }
  int64_t last_seq() const { return seq_; }
  bool has_controller() const { return controllers_ > 0; }

 private:
  struct AssignedLauncher {
    MemberId member = 0;  // 0: not connected
    int incarnation = 0;
    std::string instance;
    std::string node;
    bool leased = false;
    Millis heard{0};
    bool suspected = false;
  };
  struct Task {
    size_t role = 0;
    int index = 0;
    job::TaskState state = job::TaskState::kCreated;
    int attempt = 0;                    // that runs, or will be started next
    int attempts = 0;                   // that were started
    bool active = false;                // its program was started and has not ended
    bool ready = false;                 // … and serves
    bool stopping_for_restart = false;  // it is being stopped to be started again with others
    int results = 0;                    // that the attempt reported
    bool final = false;                 // and will not be started again
    bool ignored = false;               // its end counts as a good one, whatever it was
    bool suspended = false;             // it was ended for the job's suspension
    bool exhausted = false;             // it was not started again only for limits.restarts
    bool scaled_down = false;  // beyond what its role is to have: it leaves, or (final) has nobody
    int64_t ended_seq = 0;     // the record of its last end
    bool released = false;     // its launcher was told that nothing is left to do; of this process
    std::optional<job::TaskEnd> end;
    std::string last_line;
    std::string why_ended;  // of a bad end: why it is, or is not, started again
    job::RestartHistory history;
    Millis due{0};  // the next attempt not before
    std::optional<AssignedLauncher> launcher;
    Millis unassigned_since{0};
    std::string host;  // of the last lease
    std::vector<uint16_t> ports;
    Millis kill_at{0};  // while draining
    bool killed = false;
    Millis last_activity{0};                  // of the running attempt, as far as is known
    bool asked = false;                       // what it is doing
    std::optional<json::object> diagnostics;  // … its answer
  };
  static bool EndedWell(const Task& task) {
    return task.final && task.end && (task.ignored || task.end->ok());
  }
  // Of one role, kept up by Apply.
  struct RoleCount {
    int tasks = 0;
    int active = 0;
    int ready = 0;  // of the active
    int leased = 0;
    int final = 0;
    int well = 0;     // of the final
    int there = 0;    // leased and not ended badly, or ended well
    int missing = 0;  // of an elastic role: never joined
  };
  struct Waiting {
    LauncherJoined hello;
    int task;
  };

  // coordinator_core.cc: members and their programs.
  void On(const LauncherJoined& event);
  void On(const LauncherDisconnected& event);
  void On(const PortsLeased& event);
  void On(const LauncherHeartbeat& event);
  void On(const ProgramResult& event);
  void On(const LauncherLost& event);
  void AssignLauncher(int task, const LauncherJoined& hello);
  void Rejoin(int task, const LauncherJoined& hello);
  void JoinOccupiedSlot(int task, const LauncherJoined& hello);
  std::optional<int> ChooseTask(const LauncherJoined& event, std::string* why_not) const;
  void AssignWaitingLauncher(int task);
  // `last`: the end of its program, where the launcher still told it; else the program is lost.
  void LoseLauncher(int task, const std::string& why, const ProgramEnded* last = nullptr,
                    bool silent = false);
  void IssueGeneration(bool after_group_restart = false);
  // Tells all tasks who has ended, once `after` is stored.
  void BroadcastEnds(int64_t after);

  // core_restart.cc: starts and their order, ends, and what is started again.
  void On(const ProgramEnded& event);
  void On(const ProgramReady& event);
  void On(const PortConflict& event);
  bool StartIfDue(int task);
  // It may not start yet, by the order of roles or because its scope is not together.
  bool IsStartBlocked(int task) const;
  void StartUnblocked();
  void EndAttempt(int task, const ProgramEnded& how);
  // The end as it counts: what this coordinator or others asked for is not what the program did.
  job::TaskEnd EffectiveEnd(const Task& task, const ProgramEnded& how,
                            bool stopping_for_restart) const;
  job::RestartDecision DecideRestart(const Task& task, const ProgramEnded& how,
                                     bool consequence) const;
  job::RestartHistory HistoryOf(const Task& task) const;
  // Everybody of the record's scope is stopped, and started again in a new generation; `task` is
  // why.
  void RestartGroup(JournalRecord restart, const std::string& why);
  // The same for a port conflict, and the task gets new ones; false if nothing is started again
  // now.
  bool MayRestartForPortConflict(const Task& task) const;
  void RestartGroupForPortConflict(int task, const std::string& how);
  bool AllLeased() const;
  bool InScope(const Task& task, job::RestartScope scope, size_t role) const;
  void FinishGroupRestart();
  // Lets those go whom nobody's death will start again.
  void ReleaseFinished();

  // core_elastic.cc: roles that grow and shrink.
  void On(const Scale& event);
  std::string ScaleRefusal(const Scale& event) const;  // empty: it can be
  bool IsRecreatedByScale(const Task& task) const;
  void ApplyScale(const JournalRecord& record);
  bool IsDescribed(const Task& task) const;
  bool IsOptionalAndAbsent(const Task& task) const;
  bool CanStart() const;
  bool HasMinimumLeased() const;
  void AbandonTask(int task, const std::string& why);
  void ApplyMembershipChanges();

  // core_exclude.cc: hosts on which no program of a role is started any more.
  void ExcludeHostOf(int task, const std::string& why);
  bool OnExcludedHost(const Task& task) const;
  void ReleaseFromExcludedHosts();
  std::string DescribeExcludedHosts(size_t role) const;

  // core_stall.cc: a job that stands still.
  void On(const StallDiagnostics& event);
  bool CanStall() const;
  void NoteActivity(Task* task, Millis still);
  void DetectActivity();
  void CheckStall();
  void RequestDiagnostics();
  void DeclareStalled();
  void RestartStalled();
  int MaxStallRestarts() const;  // as many are allowed
  json::object DiagnosticsOf(const Task& task) const;
  std::vector<int> LongestIdleTasks() const;

  // core_suspend.cc: a job that is to go on some day.
  void On(const Suspend& event);
  bool suspending() const { return decided_ == job::JobState::kSuspended; }
  void ApplyResumed(const JournalRecord& record);
  bool RunsAgainAfterResume(const Task& task) const;

  // core_stop.cc: gathering, following, judging, stopping, deadlines.
  void On(const Tick& event);
  void On(const ControllerConnected& event);
  void On(const ControllerDisconnected& event);
  void On(const ControllerAlive& event);
  void On(const Command& event);
  void On(const LauncherRefused& event);
  void On(const VerdictAcknowledged& event);
  void Reevaluate();
  bool DrainFollowers();
  bool DrainForStop();
  bool DrainTask(int task, const std::string& why);
  void EvaluateSuccess();
  void DecideVerdict(job::JobState state, const std::string& reason, bool gathered = true);
  void RecordVerdict();
  // Nobody controls the job, has not for long enough, and it is to stop then.
  bool IsAbandoned() const;
  void ExitIfDone();
  void CheckLauncher(int task);
  void CheckDraining(int task);
  void CheckJobDeadlines();
  bool RoleEnded(const std::string& role) const;
  std::string MissingTasks() const;

  // core_apply.cc: records.
  int64_t Record(JournalRecord record);
  JournalRecord RecordFor(JournalRecord::Kind kind, int task) const;
  Status Apply(const JournalRecord& record);
  Status ApplyToTask(const JournalRecord& record);
  Status ChangeTask(const JournalRecord& record, Task* task);
  void ApplyEnd(const JournalRecord& record, Task* task);
  void ApplyRestart(const JournalRecord& record);
  void UpdateCounts(const Task& task, int by);
  Action& Emit(Action::Kind kind, int task = -1);
  bool AllFinal() const;
  bool VerdictIsOpen() const;
  void RecomputeDeadline();
  void ConsiderDeadline(int task);

  // Constant after construction.
  const job::Job job_;
  const CoreLimits limits_;
  std::map<std::pair<std::string, int>, int> numbers_;
  // From records.
  std::vector<Task> tasks_;
  int64_t seq_ = 0;
  int64_t generation_ = 0;
  bool gathering_ = true;  // nobody has been started yet, or since the job was resumed
  Millis gather_from_{0};
  int resumes_ = 0;
  job::JobState job_state_ = job::JobState::kStarting;
  StopMode stop_ = StopMode::kNone;
  std::string stop_reason_;
  std::optional<job::JobState> decided_;
  bool gathered_ = true;
  std::optional<Verdict> verdict_;
  std::optional<job::TaskFailure> first_death_;
  std::vector<RoleCount> counts_;         // by role
  std::vector<bool> membership_changed_;  // by role: other members than the description names
  std::vector<std::map<std::string, std::string>> excluded_;  // by role: host → why
  Millis last_leased_{0};
  int64_t ends_version_ = 0;
  bool restarted_ = false;              // anybody ever was
  int port_conflicts_ = 0;              // of ports, in the life of the job
  int restarts_ = 0;                    // counted ones, of all tasks together
  int job_restarts_ = 0;                // … of scope job
  std::vector<int> role_restarts_;      // … of scope role
  std::vector<bool> restarting_group_;  // by role: its tasks are being stopped to start together
  std::optional<Millis> group_restart_due_;  // while any is
  Millis running_since_{0};
  bool stalled_ = false;
  Millis stalled_at_{0};
  int stall_restarts_ = 0;
  int64_t stall_seq_ =
      0;  // the record of the last stall: what is done about it waits until it is stored
  // Of this process.
  Millis last_activity_{0};              // any task, as far as is known
  std::optional<Millis> inspect_until_;  // until then launchers may say what they see
  std::unordered_map<MemberId, int> members_;
  std::vector<Waiting> waiting_;
  int controllers_ = 0;
  bool controlled_ = false;   // one has come
  Millis controller_due_{0};  // while there is none
  Millis exit_by_{0};         // once there is a verdict
  bool abandoned_ = false;    // which was for the lack of a controller
  bool acked_ = false;
  bool exited_ = false;
  bool reevaluate_ = false;  // something ended or is being stopped since the last Reevaluate
  std::optional<Millis>
      next_;            // never later than it must be; earlier after deadlines last_activity on
  bool rescan_ = true;  // next_ is to be made from all tasks, not only from touched_
  std::vector<int> touched_;  // whose deadlines may have come nearer
  // Of the call under way.
  Millis now_{0};
  std::vector<Action> actions_;
};

}  // namespace shoal::rendezvous
