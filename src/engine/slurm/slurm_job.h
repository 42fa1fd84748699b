// One job as the engine on the login node sees it: the desired state it wrote, the events the agent
// logged, and the job's state in Slurm's queue. Owned by SlurmEngine and called under its lock.
// Reads and writes files of the job's directory; calls no Slurm command.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/access/directory_owner.h"
#include "base/clock.h"
#include "engine/agent/desired_state.h"
#include "engine/engine.h"
#include "engine/slurm/cell_placement.h"
#include "engine/slurm/slurm_commands.h"
#include "engine/slurm/slurm_helper.h"

namespace shoal::engine::slurm {

// Made by Make or Find; WriteDesired and WriteStop write the desired state; ReadEvents and
// ApplyQueueState return new events. The state functions below say what the engine must do next.
// Not thread-safe.
class SlurmJob {
 public:
  using Key = std::pair<std::string, int>;

  // A new job. Removes files that an earlier job with this directory left.
  static Result<std::unique_ptr<SlurmJob>> Make(const std::string& id, const std::string& dir);
  // A job from an earlier engine's records; NotFound if there are none.
  static Result<std::unique_ptr<SlurmJob>> Find(const std::string& id, const std::string& dir);

  // Writes a new desired state. `rest`: all of it but tasks and revision.
  Status WriteDesired(const DesiredJob& desired, const std::vector<CellPlan>& plan,
                      DesiredState rest);
  // Writes a desired state that ends all tasks.
  Status WriteStop(std::chrono::milliseconds grace);
  // Stores the batch script for the first and later submissions.
  Status StoreScript(const std::string& script) const;
  Result<std::string> Script() const;
  Status RecordSubmission(const Allocation& allocation);
  // Records an allocation that the agent has already written to the job's directory.
  Status RecordGrant(const Allocation& allocation);

  // Events that the agent logged since the last call.
  std::vector<TaskEvent> ReadEvents();
  // Applies the job's entry of Slurm's queue; null: it has none.
  std::vector<TaskEvent> ApplyQueueState(const QueuedJob* job, TimePoint now);
  // The Slurm job ended without a request of this engine: marks all tasks as lost.
  std::vector<TaskEvent> MarkEnded(const std::string& reason);
  // After a stop: ends of tasks that the agent did not report.
  std::vector<TaskEvent> EndRemaining();
  void RemoveRecords() const;

  std::vector<TaskStatus> List() const;
  // Location of a running task; `node` is empty if the task does not run.
  struct Location {
    std::string node;
    int component = 0;
  };
  Location LocationOf(const std::string& role, int index) const;
  const std::string& dir() const { return dir_; }
  // As whom it runs in Slurm; none: as this process's user.
  const std::optional<UserIds>& owner() const { return owner_; }
  int64_t number() const { return allocation_.number; }
  bool stopping() const { return desired_state_.stop; }
  // An agent has run: it has logged an event, or it was started with salloc.
  bool begun() const { return begun_ || (allocation_.attended && allocation_.number != 0); }
  // The last agent exited normally, and no other allocation is needed.
  bool closed() const { return closed_ && !new_allocation_requested_; }
  // The job waits for Slurm to start it or to start it again.
  bool waits() const { return !begun_ || closed_ || new_allocation_requested_ || looks_torn_ > 0; }
  // The engine must submit the job again for another allocation: its agent under salloc has ended,
  // or its allocation is torn. Slurm requeues batch jobs itself.
  bool needs_new_allocation() const {
    return new_allocation_requested_ &&
           (is_torn() || (allocation_.attended && (closed_ || vanished())));
  }
  // Requests another allocation in the cases in which Slurm would requeue a batch job.
  void RequestNewAllocation() {
    new_allocation_requested_ = (allocation_.attended || is_torn()) && desired_state_.requeue;
  }
  // Only some components of the allocation exist (QueuedJob::torn) in several successive polls: no
  // agent runs, and the Slurm job must be cancelled.
  bool is_torn() const { return looks_torn_ >= kTornLooks; }
  bool over() const { return over_; }
  // The job was missing from the queue in so many polls that its agent will report nothing more.
  bool vanished() const { return looks_without_ >= 2; }
  // The requeued job is delayed by Slurm's begin time; true once.
  bool wants_start() const { return looks_delayed_ == kDelayedLooks; }
  // The job's first node failed, and its agent with it; true once.
  bool wants_requeue() const { return looks_headless_ == 1; }

 private:
  static constexpr int kDelayedLooks = 2;
  static constexpr int kTornLooks = 2;

  SlurmJob(std::string id, std::string dir)
      : id_(std::move(id)),
        dir_(std::move(dir)),
        owner_(ForeignOwner(dir_)),
        reader_(AgentEventsPath(dir_)) {}
  TaskEvent CoordinatorEvent(TaskPhase phase, const std::string& reason) const;

  const std::string id_;
  const std::string dir_;
  const std::optional<UserIds> owner_;
  DesiredState desired_state_;
  std::map<Key, int> revisions_;  // revision of each task that was ever listed
  Allocation allocation_;
  AgentEventReader reader_;
  struct Seen {
    int incarnation = 0;
    TaskPhase phase = TaskPhase::kStarting;
    std::string node;
  };
  std::map<Key, Seen> seen_;
  std::string head_;   // node on which the latest agent started
  std::string waits_;  // the last reported reason of waiting
  bool begun_ = false;
  bool closed_ = false;
  bool new_allocation_requested_ = false;
  bool over_ = false;
  bool suspended_ = false;
  int looks_without_ = 0;
  int looks_delayed_ = 0;
  int looks_headless_ = 0;
  int looks_torn_ = 0;
};

}  // namespace shoal::engine::slurm
