// The tasks of one job as the coordinator knows them: identity, launcher, program, last end. Part
// of the coordinator's rules (coordinator_core.h); plain data and counters, no decisions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.h"
#include "job/execution/policy.h"
#include "job/spec/job.h"
#include "rendezvous/lifecycle/core_events.h"

namespace shoal::rendezvous {

// The launcher process that a task belongs to. It survives its connection: a launcher that
// reconnects with the same instance goes on.
struct AssignedLauncher {
  MemberId member = 0;  // its connection; 0: not connected
  int incarnation = 0;  // raised by the engine each time it makes the task again
  std::string instance;
  std::string node;
  bool leased = false;  // it has leased the task's ports
  Millis heard{0};      // time of its last message
  bool suspected = false;
};

// The program of the current attempt.
enum class ProgramState : uint8_t {
  kNone,     // not started, or ended
  kRunning,  // started, not ready yet
  kServing,  // ready, as the role's `ready` says
};
// Why the program is being stopped.
enum class DrainPurpose : uint8_t {
  kNone,     // it is not
  kEnd,      // for good
  kRestart,  // to start again together with its group
};
// The strongest signal that a draining program was sent.
enum class StopSignal : uint8_t { kTerm, kKill };
// A stop under way.
struct Drain {
  DrainPurpose purpose = DrainPurpose::kNone;
  StopSignal last_signal = StopSignal::kTerm;
  Millis kill_at{0};  // when SIGKILL is due, or the task counts as lost after it
};
// What the launcher reports of a stalled program.
struct Inspection {
  bool asked = false;
  std::optional<json::object> diagnostics;  // the answer
};
// How the last end counts.
enum class EndTreatment : uint8_t {
  kCounts,
  kIgnored,            // as a good one, by a rule of the job file
  kRestartsExhausted,  // it would have been restarted but for limits.restarts
  kSuspended,          // the job's suspension ended it
};

// One slot of a role. Everything but `launcher->member`, `launcher->heard`, `released` and
// `inspection` follows from the journal.
struct Task {
  size_t role = 0;  // index in Job::roles
  int index = 0;
  job::TaskState state = job::TaskState::kCreated;
  int attempt = 0;   // the one that runs, or the next one
  int attempts = 0;  // started so far
  ProgramState program = ProgramState::kNone;
  Drain drain;
  int results = 0;                                 // reported by the attempt
  bool final = false;                              // it will not be started again
  EndTreatment treatment = EndTreatment::kCounts;  // of its last end
  bool scaled_down = false;  // beyond the size of its role: it leaves, or (final) is an empty slot
  int64_t ended_seq = 0;     // number of the record of its last end
  bool released = false;     // its launcher was told to exit
  std::optional<job::TaskEnd> end;
  std::string last_line;
  std::string why_ended;  // after a bad end: why it is, or is not, started again
  job::RestartHistory history;
  Millis due{0};  // earliest start of the next attempt
  std::optional<AssignedLauncher> launcher;
  Millis unassigned_since{0};
  std::string host;  // of the last lease
  std::vector<uint16_t> ports;
  Millis last_activity{0};  // of the running attempt, as far as reported
  Inspection inspection;

  bool running() const { return program != ProgramState::kNone; }
  bool drains_for_restart() const { return drain.purpose == DrainPurpose::kRestart; }
  bool ended_well() const {
    return final && end && (treatment == EndTreatment::kIgnored || end->ok());
  }
  bool connected() const { return launcher && launcher->member != 0; }
};

// Counters of one role, so that no rule scans all tasks for every event.
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

// Owns the tasks. Numbers are positions: roles in the job's order, then index; they never change.
// A rule that changes a field which RoleCount counts calls UpdateCounts before and after.
class TaskTable {
 public:
  // `job` must outlive the table.
  explicit TaskTable(const job::Job* job);

  int size() const { return static_cast<int>(tasks_.size()); }
  Task& operator[](int number) { return tasks_[static_cast<size_t>(number)]; }
  const Task& operator[](int number) const { return tasks_[static_cast<size_t>(number)]; }
  auto begin() { return tasks_.begin(); }
  auto end() { return tasks_.end(); }
  auto begin() const { return tasks_.begin(); }
  auto end() const { return tasks_.end(); }

  const job::Role& role_of(int number) const;
  int index_of(int number) const;
  std::string NameOf(int number) const;  // "worker 3"
  std::optional<int> Find(const std::string& role, int index) const;
  // 0: the role has no port of this name, or the task has not leased yet.
  uint16_t PortOf(int number, const std::string& port) const;
  // By role name, then index.
  const std::map<std::pair<std::string, int>, int>& numbers() const { return numbers_; }

  // Connections of launchers. At most one task per connection.
  std::optional<int> TaskOf(MemberId member) const;
  MemberId MemberOf(int number) const;  // 0: not connected
  void Connect(MemberId member, int number) { members_[member] = number; }
  void Disconnect(MemberId member) { members_.erase(member); }
  bool any_connected() const { return !members_.empty(); }

  const RoleCount& count(size_t role) const { return counts_[role]; }
  const std::vector<RoleCount>& counts() const { return counts_; }
  // The described slots of the task's role when all tasks last began together; 0: not yet.
  int initial_members(int number) const;
  // All tasks begin together now.
  void RecordInitialMembers();
  // Adds (`by` = 1) or takes away (-1) what `task` contributes to its role's counters.
  void UpdateCounts(const Task& task, int by);
  // Sets all counters to zero; the caller adds every task again.
  void ClearCounts();

  bool AllFinal() const;
  bool RoleEnded(const std::string& role) const;
  // Whether the cluster description names the task.
  bool IsDescribed(const Task& task) const;
  // An elastic slot above the role's minimum that nothing has joined yet: the job does not wait.
  bool IsOptionalAndAbsent(const Task& task) const;

 private:
  const job::Job* const job_;
  std::vector<Task> tasks_;
  std::map<std::pair<std::string, int>, int> numbers_;
  std::unordered_map<MemberId, int> members_;
  std::vector<RoleCount> counts_;     // by role
  std::vector<int> initial_members_;  // by role, once recorded
};

}  // namespace shoal::rendezvous
