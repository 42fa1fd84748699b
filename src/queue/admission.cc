#include "queue/admission.h"

#include <cmath>

namespace shoal::queue {

Demand DemandOf(const job::Job& job) {
  Demand demand;
  for (const job::Role& role : job.roles) {
    // Rounded up, so that many small shares never exceed the accounted sum.
    demand.cpu_milli +=
        static_cast<int64_t>(std::ceil(role.resources.cpu_reserved() * 1000 - 1e-6)) *
        int64_t{role.replicas};
    demand.memory_bytes += role.resources.memory_reserved() * role.replicas;
    demand.gpu += int64_t{role.resources.gpu} * role.replicas;
  }
  return demand;
}

}  // namespace shoal::queue
