// The scheduler: decides which jobs start, shrink, grow and are preempted, and says why a job
// waits. The controller feeds it events and carries out its decisions; the simulator runs the same
// code over recorded events.
//
// Deterministic: the same events at the same times give the same decisions. It has no clock and no
// input or output. It assumes that its decisions are carried out; what does not happen is told by
// End or Requeue.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "queue/core/decision.h"
#include "queue/core/scheduler_state.h"
#include "queue/policy/policy.h"

namespace shoal::queue {

// Machines of one flavor.
struct FlavorMachines {
  Amounts total = kNoLimit;         // a component of kUnlimited is not limited
  Amounts largest_node = kNoLimit;  // a task must fit into it
};

enum class RequeueCause : uint8_t {
  kPreempted,    // it has saved and stopped: back to its place in the line
  kNotGathered,  // its tasks did not come together: back after a growing distance
  kNotStarted,   // the decision could not be carried out: back to its place
};

// Copyable: a copy answers what-if questions. Not thread-safe. Times are the caller's and never
// decrease; an earlier time is taken for the latest seen.
class Scheduler {
 public:
  // The policy must be valid (policy/validate_policy.h). Unknown flavors of `machines` are ignored;
  // a flavor without an entry is not limited.
  explicit Scheduler(const Policy& policy,
                     const std::map<std::string, FlavorMachines>& machines = {});

  // Events. Each may change what the next Decide answers.

  // AlreadyExists for an id that is in use, NotFound for a queue that takes no jobs.
  Result<JobRef> Submit(JobSpec spec, Millis now);
  // A job that was admitted by an earlier scheduler runs already (restart of the controller).
  // InvalidArgument if the flavor is unknown.
  Status Restore(JobRef job, const std::string& flavor, int32_t size, Millis started);
  // The job has ended or was cancelled, whatever its phase. The reference is invalid afterwards.
  void End(JobRef job, Millis now);
  // The job has released its resources and waits again.
  void Requeue(JobRef job, RequeueCause cause, Millis now);
  // A resizing was carried out, or changed by a person.
  void Resized(JobRef job, int32_t size, Millis now);
  // A job that was to stop or shrink does not: it goes on with what it holds, and nothing takes
  // from it before `until`. The job for which it was to stop goes back to its place, and finds
  // other victims or waits. Without effect on a job that neither stops nor shrinks.
  void Keep(JobRef job, Millis until, Millis now);
  // Other bounds of its size, or another demand of its other tasks. A running job has `size` from
  // now on; what it gives back is free after Resized. A waiting job keeps its place.
  void SetRequest(JobRef job, const Request& request, int32_t size, Millis now);
  // Its tasks have saved their state: less work would be lost.
  void Saved(JobRef job, Millis now);
  // It is expected to run this long from its start (JobSpec::confidence).
  void SetRunTime(JobRef job, Millis run_time, double confidence, Millis now);
  void SetMachines(const std::string& flavor, const FlavorMachines& machines, Millis now);
  // FailedPrecondition, naming the jobs, if waiting or running jobs would be stranded: their queue
  // or the flavor they hold is not in the new policy. Nothing changes then.
  Status SetPolicy(const Policy& policy, Millis now);

  // Decides for everything that happened since the last call and takes the decisions as carried
  // out. The result is valid until the next call.
  const std::vector<Decision>& Decide(Millis now);
  // The next time at which Decide could decide something without an event; kForever: none.
  Millis NextWake() const;

  // Why the job waits; kNoIndex if it does not. Valid after Decide.
  Reason ReasonOf(JobRef job) const;
  JobRef Find(const std::string& id) const { return state_.Find(id); }
  const JobState& job(JobRef job) const { return state_.job(job); }
  const SchedulerState& state() const { return state_; }

 private:
  void Release(JobRef job);
  void ReleasedFor(JobRef victim);
  void LetGo(JobRef beneficiary);
  void Classify(JobRef job);
  void Rebuild(std::shared_ptr<const Policy> policy, const std::vector<FlavorCapacity>& capacities);

  std::shared_ptr<const Policy> policy_;  // of state_
  SchedulerState state_;
  std::vector<Decision> decisions_;
  std::vector<JobRef> delayed_;
  std::vector<JobRef> kept_;  // of which nothing is taken until a time
  Millis decided_{0};         // time of the last decision
};

// Queue, lane and flavors of the job in this tree; kNoIndex and 0 where there are none.
uint32_t AllowedFlavors(const SchedulerState& state, const JobState& job);

// Whether the job could start with nothing else running: kNoIndex, or why not.
Reason Impossible(const SchedulerState& state, const JobState& job);

// Why a job waits (explain.cc).
Reason Explain(const SchedulerState& state, JobRef job);

// Whose jobs a reader may know by name: `all`, or those of these teams.
struct Viewer {
  bool all = false;
  std::set<std::string> teams = {};

  bool Sees(const JobSpec& job) const { return all || teams.contains(job.team); }
};

// One sentence, in which jobs that the viewer may not see have no names, such as "first in line;
// needs 3 GPU and 1 GPU is free; big (r1) holds 2 GPU". Without a viewer, the job's own team reads.
std::string ReasonText(const SchedulerState& state, JobRef job, const Reason& reason,
                       const Viewer& viewer);
std::string ReasonText(const SchedulerState& state, JobRef job, const Reason& reason);

}  // namespace shoal::queue
