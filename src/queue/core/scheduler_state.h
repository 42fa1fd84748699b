// The state of a scheduler between two decisions: jobs, lines, usage and reservations, kept
// consistent by the operations here. The rules that change it are in round.cc (who starts),
// victims.cc (who is preempted) and elastic.cc (who grows).
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "queue/core/arenas.h"
#include "queue/core/decision.h"
#include "queue/core/job.h"
#include "queue/core/lanes.h"
#include "queue/core/ledger.h"
#include "queue/core/quota_tree.h"
#include "queue/policy/policy.h"

namespace shoal::queue {

// Copyable: a copy is an independent what-if. Not thread-safe.
class SchedulerState {
 public:
  // The state and its copies share the policy.
  SchedulerState(std::shared_ptr<const Policy> policy,
                 const std::vector<FlavorCapacity>& capacities);

  const Policy& policy() const { return *policy_; }
  const QuotaTree& tree() const { return *tree_; }
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }
  Arenas& arenas() { return arenas_; }
  const Arenas& arenas() const { return arenas_; }
  Lanes& lanes() { return lanes_; }
  const Lanes& lanes() const { return lanes_; }
  Millis now() const { return now_; }
  // Time never goes back: an earlier time is ignored.
  void Advance(Millis now);

  // Jobs. A JobRef is valid until RemoveJob.
  JobRef AddJob(JobSpec spec);
  void RemoveJob(JobRef job);
  // Takes over the jobs, the time and the past usage of another state of another policy or other
  // capacities, in which every job's queue and flavor exist. This state must be new.
  void TakeJobs(const SchedulerState& other);
  JobRef Find(const std::string& id) const;
  JobState& job(JobRef ref) { return jobs_[static_cast<size_t>(ref)]; }
  const JobState& job(JobRef ref) const { return jobs_[static_cast<size_t>(ref)]; }
  size_t job_slots() const { return jobs_.size(); }

  // Waiting jobs.
  void EnterLine(JobRef job);
  void LeaveLine(JobRef job);

  // Jobs that hold resources. What a job holds (`real`) differs from what it is to hold while it
  // waits for its victims, or stops or shrinks for another: both stay within quotas and capacity.
  void BeginHold(JobRef job, FlavorIndex flavor, const Amounts& charge, const Amounts& real,
                 Millis end);
  void SetCharge(JobRef job, const Amounts& charge, const Amounts& real);
  void SetEnd(JobRef job, Millis end);
  void EndHold(JobRef job);
  const std::vector<JobRef>& RunningOf(NodeIndex leaf) const {
    return running_[static_cast<size_t>(leaf)];
  }

  const std::vector<NodeIndex>& LeavesOf(NodeIndex root) const {
    return leaves_[static_cast<size_t>(root)];
  }

  // What a job of the leaf can take of the flavor now: the least of quotas and free capacity, of
  // what jobs are to hold and of what they hold.
  Amounts Available(FlavorIndex flavor, NodeIndex leaf) const;
  // The same at the time of the arena's reservation, beside the reserved job.
  Amounts ShadowAvailable(const Arena& arena, NodeIndex leaf) const;
  // Makes the arena's reservation for the job; false if it would not fit with nothing running, and
  // then there is none.
  bool Reserve(Arena* arena, JobRef job);
  void DropReservation(Arena* arena) { arena->reservation = {}; }
  bool InShadow(const Arena& arena, const JobState& state) const;

  // Queues to look at in the next decision.
  void Touch(NodeIndex leaf);           // a job came
  void TouchArena(const Arena& arena);  // resources became free
  std::vector<NodeIndex> TakeTouched();
  // Number of changes that freed something, by root.
  int64_t version(NodeIndex root) const { return versions_[static_cast<size_t>(root)]; }
  // Jobs whose victims have all released, in that order.
  std::vector<JobRef>& ready() { return ready_; }
  // Jobs that were found to be impossible since the last decision.
  std::vector<JobRef>& impossible() { return impossible_; }
  // For which job of a leaf, at which version, victims were sought in vain.
  std::pair<int64_t, int64_t>& tried(NodeIndex leaf) { return tried_[static_cast<size_t>(leaf)]; }

 private:
  void PostponeOverruns(Arena* arena);
  void Shadow(Arena* arena, const JobState& state, const Amounts& added, bool charge);

  std::shared_ptr<const Policy> policy_;
  std::shared_ptr<const QuotaTree> tree_;
  Ledger ledger_;
  Arenas arenas_;
  Lanes lanes_;
  Millis now_{0};
  std::vector<JobState> jobs_;
  std::vector<JobRef> free_;
  std::unordered_map<std::string, JobRef> by_id_;
  std::vector<std::vector<JobRef>> running_;    // by leaf
  std::vector<std::vector<NodeIndex>> leaves_;  // by root
  std::vector<bool> touched_;                   // by leaf
  std::vector<NodeIndex> touched_list_;
  std::vector<bool> touched_roots_;
  std::vector<NodeIndex> touched_root_list_;
  std::vector<int64_t> versions_;  // by root
  std::vector<JobRef> ready_;
  std::vector<JobRef> impossible_;
  std::vector<std::pair<int64_t, int64_t>> tried_;  // by leaf
  int64_t next_serial_ = 1;
  int64_t next_hold_serial_ = 1;
};

// SchedulerState::Available of what jobs hold alone: an assigned job starts when it fits there.
Amounts RealAvailable(const SchedulerState& state, FlavorIndex flavor, NodeIndex leaf);

}  // namespace shoal::queue
