// The coordinator's rules as a pure state machine: events in, actions out. No I/O, no clock, no
// randomness; time is handed in as milliseconds since the job's start.
//
//   launchers, controllers, timers ──Event──▶ CoordinatorCore ──Action──▶ coordinator.cc (the
//   shell)
//                                                  │ Fact (in the action kRecord) ──▶ journal
//
// The state is the sum of the facts: Restore with what a journal holds gives the same core. The
// lifecycle is drawn in docs/design/task-lifecycle.md. Restart scopes: `task`; a role that asks for
// `role` or `job` is treated as `task`.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "dialect/cluster.h"
#include "job/job.h"
#include "job/policy.h"
#include "rendezvous/fact.h"

namespace shoal::rendezvous {

using Millis = std::chrono::milliseconds;
// A connection of a launcher: the shell numbers them from 1 and never uses a number twice.
using MemberId = uint64_t;

// ---- Events -------------------------------------------------------------------------------------

struct Joined {
  MemberId member = 0;
  std::string role;
  int index = -1;  // -1: any
  int incarnation = 0;
  std::string instance;      // names the launcher's process; the same over its reconnections
  int64_t generation = 0;    // that it knows
  int last_attempt = -1;     // whose program it was last told to start
  bool has_program = false;  // that attempt runs, or its end was not acknowledged
};
struct Left {
  MemberId member = 0;
};
struct PortsLeased {
  MemberId member = 0;
  std::string host;
  std::vector<uint16_t> ports;
};
struct Heard {  // a heartbeat or anything else
  MemberId member = 0;
};
// Its log lines are stored already.
struct ProgramEnded {
  MemberId member = 0;
  int attempt = 0;
  job::TaskEnd end;
  std::string last_line;
};
struct ProgramResult {
  MemberId member = 0;
  int attempt = 0;
  int number = 0;  // of the attempt's results: 0, 1, … ; one that is told again is ignored
  json::object body;
};
struct Tick {};
struct ControllerCame {};
struct ControllerWent {};
struct Command {
  StopMode mode = StopMode::kDrain;
  std::string reason;
};
// The engine's word.
struct LauncherLost {
  std::string role;
  int index = 0;
  int incarnation = 0;
  std::string reason;
};
struct LauncherRefused {
  std::string role;
  int index = 0;
  std::string reason;
};
struct VerdictAcked {};

using Event = std::variant<Joined, Left, PortsLeased, Heard, ProgramEnded, ProgramResult, Tick,
                           ControllerCame, ControllerWent, Command, LauncherLost, LauncherRefused,
                           VerdictAcked>;

// ---- Actions ------------------------------------------------------------------------------------

struct Action {
  enum class Kind : uint8_t {
    kRecord,    // fact: append to the journal, then tell the controllers
    kWelcome,   // member holds the place of `task`; `lease`: it is to lease its ports
    kWait,      // member waits for the place; text: for whom
    kRefuse,    // text; close
    kStart,     // the program of `task`, `attempt`, in the current generation
    kDescribe,  // the current description to member, or to all (0)
    kDrain,     // SIGTERM now, SIGKILL after the grace; text: why
    kKill,      // SIGKILL now
    kAck,       // the end of `attempt` is stored
    kRelease,   // nothing is left to do for member: it may exit with 0
    kNote,      // text, to the controllers; not recorded
    kWriteVerdict,
    kExit,
  };
  Kind kind = Kind::kNote;
  MemberId member = 0;
  int task = -1;
  int attempt = 0;
  bool lease = false;
  // Not before the fact of this number is on disk; 0: at once.
  int64_t after = 0;
  std::string text;
  Fact fact;
};

struct CoreLimits {
  Millis suspect{5'000};
  Millis dead{30'000};
  Millis controller_loss{5'000};
  Millis controller_start{10'000};  // until the first one comes
  Millis kill_again{5'000};         // a task that does not end after SIGKILL is given up as lost
  Millis linger{5'000};             // after the verdict, for its acknowledgement
};

// ---- The machine --------------------------------------------------------------------------------

class CoordinatorCore {
 public:
  // `job` was validated.
  explicit CoordinatorCore(job::Job job, CoreLimits limits = {});

  // Applies the facts of an earlier coordinator. Once, before Begin. DataLoss if they do not fit
  // the job.
  Status Restore(const std::vector<Fact>& facts);
  // Starts, or goes on after Restore.
  std::vector<Action> Begin(Millis now);
  // O(1) for Heard; O(tasks) when something ends.
  std::vector<Action> Handle(const Event& event, Millis now);
  // When Handle(Tick) has something to do; none: never. May be early.
  std::optional<Millis> NextDeadline() const;

  // What the shell needs to act.
  const job::Job& job() const { return job_; }
  int task_count() const { return static_cast<int>(tasks_.size()); }
  const job::Role& role_of(int task) const;
  int index_of(int task) const;
  std::string NameOf(int task) const;  // "worker 3"
  std::optional<int> Find(const std::string& role, int index) const;
  int64_t generation() const { return generation_; }
  dialect::ClusterDescription Cluster() const;
  std::optional<int> TaskOf(MemberId member) const;
  MemberId MemberOf(int task) const;  // 0: not connected
  job::TaskState state_of(int task) const;
  int attempt_of(int task) const;
  job::JobState job_state() const { return job_state_; }
  const std::optional<Verdict>& verdict() const { return verdict_; }
  int64_t last_seq() const { return seq_; }

 private:
  struct Holder {
    MemberId member = 0;  // 0: not connected
    int incarnation = 0;
    std::string instance;
    bool leased = false;
    Millis heard{0};
    bool suspected = false;
  };
  struct Task {
    size_t role = 0;
    int index = 0;
    job::TaskState state = job::TaskState::kCreated;
    int attempt = 0;      // that runs, or will be started next
    int attempts = 0;     // that were started
    bool active = false;  // its program was started and has not ended
    int results = 0;      // that the attempt reported
    bool final = false;   // and will not be started again
    std::optional<job::TaskEnd> end;
    std::string last_line;
    std::string why_final;  // of a bad end: why it is not started again
    job::RestartHistory history;
    Millis due{0};  // the next attempt not before
    std::optional<Holder> holder;
    Millis unplaced_at{0};
    std::string host;  // of the last lease
    std::vector<uint16_t> ports;
    Millis kill_at{0};  // while draining
    bool killed = false;
  };
  static bool EndedWell(const Task& task) { return task.final && task.end && task.end->ok(); }
  struct Waiting {
    Joined hello;
    int task;
  };

  // coordinator_core.cc: members and their programs.
  void On(const Joined& event);
  void On(const Left& event);
  void On(const PortsLeased& event);
  void On(const Heard& event);
  void On(const ProgramEnded& event);
  void On(const ProgramResult& event);
  void On(const LauncherLost& event);
  void Place(int task, const Joined& hello);
  void Rejoin(int task, const Joined& hello);
  void JoinHeldPlace(int task, const Joined& hello);
  std::optional<int> ChooseTask(const Joined& event, std::string* why_not) const;
  void PlaceWaiting(int task);
  void EndAttempt(int task, job::TaskEnd end, const std::string& last_line);
  job::RestartDecision Decide(const Task& task, const job::TaskEnd& end, bool consequence) const;
  void LoseHolder(int task, const std::string& why);
  void StartIfDue(int task);
  void IssueGeneration();
  // Tells all tasks who has ended, once `after` is stored.
  void DescribeEnds(int64_t after);

  // core_stop.cc: gathering, following, judging, stopping, deadlines.
  void On(const Tick& event);
  void On(const ControllerCame& event);
  void On(const ControllerWent& event);
  void On(const Command& event);
  void On(const LauncherRefused& event);
  void On(const VerdictAcked& event);
  void Settle();
  bool DrainFollowers();
  bool DrainForStop();
  bool DrainTask(int task, const std::string& why);
  void Judge();
  void DecideVerdict(job::JobState state, const std::string& reason, bool gathered = true);
  void RecordVerdict();
  // Nobody controls the job, has not for long enough, and it is to stop then.
  bool Abandoned() const;
  void MaybeExit();
  void CheckHolder(int task);
  void CheckDraining(int task);
  void CheckJobDeadlines();
  bool RoleEnded(const std::string& role) const;
  std::string MissingTasks() const;

  // core_apply.cc: facts.
  int64_t Record(Fact fact);
  Fact FactOf(Fact::Kind kind, int task) const;
  Status Apply(const Fact& fact);
  Status ApplyToTask(const Fact& fact);
  void ApplyEnd(const Fact& fact, Task* task);
  Action& Do(Action::Kind kind, int task = -1);
  void RecomputeDeadline();

  // Constant after construction.
  const job::Job job_;
  const CoreLimits limits_;
  std::map<std::pair<std::string, int>, int> numbers_;
  // From facts.
  std::vector<Task> tasks_;
  int64_t seq_ = 0;
  int64_t generation_ = 0;
  job::JobState job_state_ = job::JobState::kStarting;
  StopMode stop_ = StopMode::kNone;
  std::string stop_reason_;
  std::optional<job::JobState> decided_;
  bool gathered_ = true;
  std::optional<Verdict> verdict_;
  std::optional<job::Death> first_death_;
  Millis running_since_{0};
  // Of this process.
  std::unordered_map<MemberId, int> members_;
  std::vector<Waiting> waiting_;
  int controllers_ = 0;
  Millis controller_due_{0};  // while there is none
  Millis exit_by_{0};         // once there is a verdict
  bool acked_ = false;
  bool exited_ = false;
  bool unsettled_ = false;  // something ended or is being stopped since the last Settle
  std::optional<Millis> next_;
  // Of the call under way.
  Millis now_{0};
  std::vector<Action> actions_;
};

}  // namespace shoal::rendezvous
