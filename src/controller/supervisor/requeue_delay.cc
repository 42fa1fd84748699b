#include "controller/supervisor/requeue_delay.h"

#include <algorithm>

#include "base/id.h"

namespace shoal::controller {

Duration RequeueDelay(int failures, Duration first, Duration longest) {
  constexpr uint64_t kParts = 1024;
  const Duration delay = first * (int64_t{1} << (failures - 1));
  const auto part = static_cast<int64_t>(RandomSeed() % kParts);
  return std::min(delay, longest) + delay / 4 * part / static_cast<int64_t>(kParts);
}

}  // namespace shoal::controller
