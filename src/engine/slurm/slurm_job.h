// One job as the engine on the login node sees it: what it ordered, what the agent told, what
// Slurm's queue says. Owned by SlurmEngine and called under its lock; its I/O is files of the job's
// directory.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/agent/desired_state.h"
#include "engine/engine.h"
#include "engine/slurm/cell_placement.h"
#include "engine/slurm/slurm_commands.h"
#include "engine/slurm/slurm_helper.h"

namespace shoal::engine::slurm {

class SlurmJob {
 public:
  using Key = std::pair<std::string, int>;

  // A job of which nothing exists: what an earlier life of it left is removed.
  static Result<std::unique_ptr<SlurmJob>> Make(const std::string& id, const std::string& dir);
  // From what an earlier engine wrote; NotFound if it wrote nothing.
  static Result<std::unique_ptr<SlurmJob>> Find(const std::string& id, const std::string& dir);

  // Writes what is to exist now. `rest`: of the orders, all but tasks and number.
  Status Order(const DesiredJob& desired, const std::vector<CellPlan>& plan, DesiredState rest);
  // Writes that all is to end.
  Status OrderStop(std::chrono::milliseconds grace);
  // What it is submitted by, now or later.
  Status KeepScript(const std::string& script) const;
  Result<std::string> Script() const;
  Status Submitted(const Allocation& allocation);
  // Likewise, where its agent has written that already.
  Status Granted(const Allocation& allocation);

  // What the agent told since the last call.
  std::vector<TaskEvent> Read();
  // What the queue says of it; null: it does not know it.
  std::vector<TaskEvent> Look(const QueuedJob* job, TimePoint now);
  // It is over in Slurm, and not by us.
  std::vector<TaskEvent> OverWith(const std::string& reason);
  // After a stop: what was not told of what ran.
  std::vector<TaskEvent> EndAll();
  void RemoveRecords() const;

  std::vector<TaskStatus> List() const;
  // Where a running task is; the node is empty of others.
  struct Where {
    std::string node;
    int component = 0;
  };
  Where PlaceOf(const std::string& role, int index) const;
  const std::string& dir() const { return dir_; }
  int64_t number() const { return allocation_.number; }
  bool stopping() const { return orders_.stop; }
  // An agent runs, or ran: it has written something, or said under an salloc that it is there.
  bool begun() const { return begun_ || (allocation_.attended && allocation_.number != 0); }
  // The last one has ended in order, and there is to be no other.
  bool closed() const { return closed_ && !another_; }
  // Slurm is to start it, now or again.
  bool waits() const { return !begun_ || closed_ || another_ || looks_torn_ > 0; }
  // It is to go on in another allocation, and Slurm does not see to that: an agent that an salloc
  // ran has ended, or its allocation is torn.
  bool wants_another() const {
    return another_ && (is_torn() || (allocation_.attended && (closed_ || vanished())));
  }
  // … as Slurm itself would see to it for a batch job.
  void WantAnother() { another_ = (allocation_.attended || is_torn()) && orders_.requeue; }
  // Some components of its allocation are gone and others are not (QueuedJob::torn), for more than
  // a moment: no agent runs, and it has to be cancelled.
  bool is_torn() const { return looks_torn_ >= kTornLooks; }
  bool over() const { return over_; }
  // It has left the queue for so many looks that nothing more is to be expected of its agent.
  bool vanished() const { return looks_without_ >= 2; }
  // It was put into the queue again and would wait for no reason.
  bool wants_start() const { return looks_delayed_ == kDelayedLooks; }
  // Its first node is gone, and its agent with it. True once.
  bool wants_requeue() const { return looks_headless_ == 1; }

 private:
  static constexpr int kDelayedLooks = 2;
  static constexpr int kTornLooks = 2;

  SlurmJob(std::string id, std::string dir)
      : id_(std::move(id)), dir_(std::move(dir)), reader_(AgentEventsPath(dir_)) {}
  TaskEvent CoordinatorEvent(TaskPhase phase, const std::string& reason) const;

  const std::string id_;
  const std::string dir_;
  DesiredState orders_;
  std::map<Key, int> rounds_;  // of each task that was ever named
  Allocation allocation_;
  AgentEventReader reader_;
  struct Seen {
    int incarnation = 0;
    TaskPhase phase = TaskPhase::kStarting;
    std::string node;
  };
  std::map<Key, Seen> seen_;
  std::string head_;   // the allocation's node on which the latest agent began
  std::string waits_;  // why, as it was told last
  bool begun_ = false;
  bool closed_ = false;
  bool another_ = false;
  bool over_ = false;
  bool suspended_ = false;
  int looks_without_ = 0;
  int looks_delayed_ = 0;
  int looks_headless_ = 0;
  int looks_torn_ = 0;
};

}  // namespace shoal::engine::slurm
