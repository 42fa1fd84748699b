#include "engine/tasks/task_state.h"

#include <utility>

namespace shoal::engine {

void TaskState::ResetForStart(TimePoint now) {
  phase = TaskPhase::kStarting;
  history = RestartHistory();
  start_at = now;
}

void TaskState::TakeEnd(const RestartContext& now_true, TimePoint now, TaskEnd* end,
                        const ReadLogTail& words) {
  kill_at.reset();
  if (end->reason.empty()) end->reason = DescribeEnd(*end);
  const bool was_asked = std::exchange(asked, false);
  const bool lost = !was_asked && !now_true.stopping && IsLoss(*end) && now_true.restart_if_lost;
  if (lost) return ApplyLoss(now_true.restart, now, end, words);
  phase = TaskPhase::kEnded;
  // Named again by an Apply that came while it was ending.
  if (was_asked && wanted && !now_true.stopping) start_at = now;
}

void TaskState::ApplyLoss(const RestartRules& rules, TimePoint now, TaskEnd* end,
                          const ReadLogTail& words) {
  if (end->signal == 0 && end->exit_code == job::kExitHostExcluded) {
    // No fault of its own. It is to be started elsewhere: when an Apply has said where not.
    constexpr int kPatience = 10;
    phase = TaskPhase::kLost;
    start_at = now + kPatience * rules.first;
    return;
  }
  if (const auto wait = history.AfterLoss(rules, now - started)) {
    phase = TaskPhase::kLost;
    start_at = now + *wait;
    return;
  }
  phase = TaskPhase::kRefused;
  if (!end->out_of_memory) end->reason = DescribeGivenUp(history.deaths(), *end, words());
}

}  // namespace shoal::engine
