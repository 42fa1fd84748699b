// Learned run times, for jobs that declare none: backfill needs an idea of when jobs end.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include "queue/core/amounts.h"

namespace shoal::queue {

// The mean of the last two runs of the same kind predicts best of all simple rules (Tsafrir,
// Etsion and Feitelson 2007, "Backfilling Using System-Generated Predictions"). A kind is named by
// the caller, such as user and job name. Copyable, not thread-safe. O(1); it keeps the kinds that
// were learnt last.
class RunTimes {
 public:
  // A run that ended by itself. Interrupted ones teach nothing.
  void Learn(const std::string& kind, Millis run_time);
  // 0: nothing is known of this kind.
  Millis Expect(const std::string& kind) const;
  // The share of the runs of this kind that took no more than a tenth longer than was expected
  // before them, with one hit and one miss added, so that it is 1/2 without experience.
  double Confidence(const std::string& kind) const;

 private:
  static constexpr size_t kMostKinds = 20'000;

  struct Last {
    Millis last{0};
    Millis before{0};
    int32_t hits = 0;
    int32_t runs = 0;  // that had an expectation
  };
  void Forget();

  std::unordered_map<std::string, Last> kinds_;
  std::deque<std::string> learnt_;  // kinds in the order in which they were first learnt
};

}  // namespace shoal::queue
