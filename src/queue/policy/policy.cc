#include "queue/policy/policy.h"

namespace shoal::queue {

Policy DefaultPolicy(const std::vector<std::string>& flavors) {
  Policy policy;
  for (const std::string& name : flavors) {
    Flavor flavor;
    flavor.name = name;
    policy.flavors.push_back(std::move(flavor));
  }
  QueueSpec queue;
  queue.name = policy.default_queue;
  policy.queues.push_back(std::move(queue));
  return policy;
}

}  // namespace shoal::queue
