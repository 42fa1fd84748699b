// Learned run times, for jobs that declare none: backfill needs an idea of when jobs end.
#pragma once

#include <string>
#include <unordered_map>

#include "queue/core/amounts.h"

namespace shoal::queue {

// The mean of the last two runs of the same kind predicts best of all simple rules (Tsafrir,
// Etsion and Feitelson 2007, "Backfilling Using System-Generated Predictions"). A kind is named by
// the caller, such as user and job name. Copyable, not thread-safe. O(1); memory O(kinds).
class RunTimes {
 public:
  // A run that ended by itself. Interrupted ones teach nothing.
  void Learn(const std::string& kind, Millis run_time);
  // 0: nothing is known of this kind.
  Millis Expect(const std::string& kind) const;

 private:
  struct Last {
    Millis last{0};
    Millis before{0};
  };
  std::unordered_map<std::string, Last> kinds_;
};

}  // namespace shoal::queue
