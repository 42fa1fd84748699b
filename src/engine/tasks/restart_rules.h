// Back-off and give-up rules for lost tasks, the same on every engine that restarts tasks itself;
// texts about ends; checks of what engines are given.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "engine/engine.h"

namespace shoal::engine {

// The delay before a restart doubles from `first` to `longest`. A task that died `attempts` times
// in a row, each time within `healthy` of its start, is refused: it cannot start at all.
struct RestartRules {
  std::chrono::milliseconds first{100};  // doubles each time
  std::chrono::milliseconds longest{10'000};
  std::chrono::milliseconds healthy{5'000};
  int attempts = 5;
};

// Deaths of one task. Plain value.
class RestartHistory {
 public:
  // Delay before the next incarnation; nothing if the task is given up.
  std::optional<std::chrono::milliseconds> AfterLoss(const RestartRules& rules,
                                                     std::chrono::nanoseconds lived) {
    if (lived >= rules.healthy) deaths_ = 0;
    ++deaths_;
    if (deaths_ >= rules.attempts) return std::nullopt;
    std::chrono::milliseconds wait = rules.first;
    for (int i = 1; i < deaths_ && wait < rules.longest; ++i) wait *= 2;
    return std::min(wait, rules.longest);
  }
  int deaths() const { return deaths_; }

 private:
  int deaths_ = 0;
};

// Whether an end of a task that should still exist is a loss: every end but exit code 0. (77 is a
// launcher whose result was not acknowledged.)
bool IsLoss(const TaskEnd& end);

// A predicate: "was killed by signal 9 (Killed)", "exited with code 3".
std::string DescribeEnd(const TaskEnd& end);

// "ended 5 times in a row as soon as it was started; the last time it exited with code 3 and said:
// …"
std::string DescribeGivenUp(int deaths, const TaskEnd& last, const std::string& log_tail);

// Checks a name that becomes part of a path: letters, digits, '-', '_', '.', not starting with '.';
// at most 200 characters. InvalidArgument calls it `what`.
Status CheckName(const std::string& what, const std::string& name);

// Checks that every Apply makes: ids and roles are valid names, no task is listed twice, each has a
// command. InvalidArgument.
Status CheckDesiredJob(const DesiredJob& desired);

}  // namespace shoal::engine
