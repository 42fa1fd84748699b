#include "controller/admission/engine_queues.h"

#include <algorithm>
#include <utility>

namespace shoal::controller {
namespace {

constexpr int64_t kKibibyte = 1024;
constexpr int64_t kMilli = 1000;

}  // namespace

queue::Policy EnginesAsFlavors(const std::vector<std::string>& engines) {
  queue::Policy policy = queue::DefaultPolicy(engines);
  for (queue::Flavor& flavor : policy.flavors) flavor.engine = flavor.name;
  for (queue::QueueSpec& queue : policy.queues) {
    queue.order = queue::QueueOrder::kStrict;
    queue.preempt_within = queue::PreemptRule::kNever;
  }
  policy.grow = false;
  return policy;
}

queue::Policy WithModes(queue::Policy policy, const QueueModes& modes) {
  for (queue::QueueSpec& queue : policy.queues) {
    const auto mode = modes.find(queue.name);
    if (mode != modes.end()) queue.mode = std::max(queue.mode, mode->second);
  }
  return policy;
}

queue::FlavorMachines MachinesOf(const engine::Capacity& capacity) {
  queue::FlavorMachines machines;
  if (capacity.memory_bytes > 0) machines.total[1] = capacity.memory_bytes / kKibibyte;
  machines.total[2] = capacity.gpu * kMilli;
  return machines;
}

}  // namespace shoal::controller
