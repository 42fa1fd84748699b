// When a lost task is made again, and when that is given up: the same on every engine that has to
// do it itself.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "engine/engine.h"

namespace shoal::engine {

// A task that died `attempts` times in a row, each within `healthy` of its start, is refused: it
// cannot start at all, and its own log says why.
struct RestartRules {
  std::chrono::milliseconds first{100};  // doubles each time
  std::chrono::milliseconds longest{10'000};
  std::chrono::milliseconds healthy{5'000};
  int attempts = 5;
};

// Of one task. Plain value.
class RestartHistory {
 public:
  // How long to wait before the next incarnation; nothing if it is given up.
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

// An end of a task that still should exist: exit code 0 is its good end, all else a loss. (77 is a
// launcher whose result was not acknowledged.)
bool IsLoss(const TaskEnd& end);

// "was killed by signal 9 (Killed)", "exited with code 3": follows a subject.
std::string DescribeEnd(const TaskEnd& end);

// "ended 5 times in a row as soon as it was started; the last time it exited with code 3 and said:
// …"
std::string DescribeGivenUp(int deaths, const TaskEnd& last, const std::string& log_tail);

// Names that become parts of paths: letters, digits, '-', '_', '.', not starting with '.'; at most
// 200 characters.
Status CheckName(const std::string& what, const std::string& name);

// Checks of what every engine is given.
Status CheckDesiredJob(const DesiredJob& desired);

}  // namespace shoal::engine
