#include "engine/tasks/task_state.h"

#include <utility>

namespace shoal::engine {

void TaskState::ResetForStart(TimePoint now) {
  phase = TaskPhase::kStarting;
  history = RestartHistory();
  start_at = now;
}

void TaskState::ApplyEnd(const RestartContext& context, TimePoint now, TaskEnd* end,
                         const ReadLogTail& words) {
  kill_at.reset();
  if (end->reason.empty()) end->reason = DescribeEnd(*end);
  const bool stop_was_requested = std::exchange(stop_requested, false);
  const bool lost =
      !stop_was_requested && !context.stopping && IsLoss(*end) && context.restart_if_lost;
  if (lost) return ApplyLoss(context.restart, now, end, words);
  phase = TaskPhase::kEnded;
  // Listed again by an Apply during its end.
  if (stop_was_requested && listed && !context.stopping) start_at = now;
}

void TaskState::ApplyLoss(const RestartRules& rules, TimePoint now, TaskEnd* end,
                          const ReadLogTail& words) {
  if (end->signal == 0 && end->exit_code == job::kExitHostExcluded) {
    // Does not count as a failure. It starts on another host once an Apply has excluded this one.
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
