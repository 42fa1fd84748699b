#include "queue/core/run_times.h"

namespace shoal::queue {

void RunTimes::Learn(const std::string& kind, Millis run_time) {
  const Millis expected = Expect(kind);
  const auto [found, added] = kinds_.try_emplace(kind);
  if (added) {
    learnt_.push_back(kind);
    if (learnt_.size() > kMostKinds) Forget();
  }
  Last& last = found->second;
  if (expected > Millis(0)) {
    ++last.runs;
    last.hits += run_time <= expected + expected / 10 ? 1 : 0;
  }
  last.before = last.last;
  last.last = run_time;
}

void RunTimes::Forget() {
  kinds_.erase(learnt_.front());
  learnt_.pop_front();
}

double RunTimes::Confidence(const std::string& kind) const {
  const auto found = kinds_.find(kind);
  if (found == kinds_.end()) return 0.5;
  return static_cast<double>(found->second.hits + 1) / static_cast<double>(found->second.runs + 2);
}

Millis RunTimes::Expect(const std::string& kind) const {
  const auto found = kinds_.find(kind);
  if (found == kinds_.end()) return Millis(0);
  const Last& last = found->second;
  return last.before > Millis(0) ? (last.last + last.before) / 2 : last.last;
}

}  // namespace shoal::queue
