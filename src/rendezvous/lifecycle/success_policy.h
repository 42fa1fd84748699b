// Applies the job's success rule (job/policy.h, Judge) to the tasks' ends, and records the verdict.
#pragma once

#include "rendezvous/lifecycle/core_state.h"

namespace shoal::rendezvous {

class SuccessPolicy {
 public:
  explicit SuccessPolicy(CoreState* state) : state_(state) {}

  // Decides the verdict if the rule is met or can no longer be met. Cheap while neither can be:
  // O(roles); else O(tasks).
  void EvaluateSuccess();
  // Records the decided verdict with every task's result. Once, when all tasks are final.
  void RecordVerdict();

 private:
  // No task has ended badly, and tasks that must end well have not ended: nothing to decide.
  bool VerdictIsOpen() const;

  CoreState* const state_;
};

}  // namespace shoal::rendezvous
