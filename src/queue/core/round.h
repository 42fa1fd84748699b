// One decision: who starts, shrinks, grows, is preempted or gets the reservation. Used by
// scheduler.cc.
#pragma once

#include <vector>

#include "queue/core/scheduler_state.h"
#include "queue/core/victims.h"
#include "queue/core/windows.h"

namespace shoal::queue {

// Decides for all that changed since the last decision and applies the decisions to the state.
//
// Queues are served in the order of Ledger::Before. From each, the first job in order that fits is
// started. If that is not the first of the line, the first one is blocked: it may take from others
// (victims.h), else it gets the reservation of its arena, and later jobs start only if they do not
// delay the reserved one.
class Round {
 public:
  Round(SchedulerState* state, std::vector<Decision>* decisions);
  void Run();

 private:
  struct Choice {
    JobRef job = kNoIndex;
    FlavorIndex flavor = kNoIndex;
  };
  struct Active {
    NodeIndex leaf = kNoIndex;
    int64_t order = 0;  // of its first job
  };

  void RefuseImpossible();
  void EnforceStops();
  void Preempt(JobRef job, ReasonCode why);
  void StartReady();
  void StartReserved();
  void StartReservedOf(Arena* arena);
  void ServeByGroups(std::vector<NodeIndex>* leaves);
  void Serve(const std::vector<NodeIndex>& leaves);
  size_t NextServed(const std::vector<Active>& active) const;
  // Starts one job of the leaf or sets resources aside for it; false if there is no more to do.
  bool Visit(NodeIndex leaf);
  bool StartWithReservation(JobRef head);
  JobRef Head(NodeIndex leaf) const;
  Choice FirstStartable(NodeIndex leaf) const;
  JobRef FirstOfLane(const Lane& lane, const Arena& arena, const Amounts& amounts) const;
  JobRef FirstInWindow(WaitingLines::Line line, FlavorIndex flavor, LineBounds bounds) const;
  bool TakeFromOthers(JobRef job);
  bool Undo(JobRef job);
  void SetAside(JobRef job, FlavorIndex flavor, const std::vector<Victim>& victims);
  bool EnsureReservation(JobRef head);
  bool MayReserve(FlavorIndex flavor, const JobState& job) const;
  bool HasReservation(JobRef job) const;
  JobRef FirstBlocked(const Arena& arena, JobRef head) const;
  void TellReservation(const Arena& arena);
  void Admit(JobRef job, FlavorIndex flavor);
  void Grow();
  void GrowJob(JobRef job);
  bool Admits(FlavorIndex flavor, const JobState& job) const;

  SchedulerState& state_;
  std::vector<Decision>& decisions_;
  std::vector<WindowView> windows_;  // by flavor
};

}  // namespace shoal::queue
