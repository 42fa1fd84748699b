#include "queue/core/run_times.h"

namespace shoal::queue {

void RunTimes::Learn(const std::string& kind, Millis run_time) {
  Last& last = kinds_[kind];
  last.before = last.last;
  last.last = run_time;
}

Millis RunTimes::Expect(const std::string& kind) const {
  const auto found = kinds_.find(kind);
  if (found == kinds_.end()) return Millis(0);
  const Last& last = found->second;
  return last.before > Millis(0) ? (last.last + last.before) / 2 : last.last;
}

}  // namespace shoal::queue
