#include "queue/core/job_spec.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace shoal::queue {
namespace {

// nullptr for a job without roles.
const job::Role* CountedRole(const job::Job& job) {
  const auto key = [](const job::Role& role) {
    return std::tuple(role.most() - role.least(), role.replicas);
  };
  const job::Role* counted = nullptr;
  for (const job::Role& role : job.roles) {
    if (counted == nullptr || key(role) > key(*counted)) counted = &role;
  }
  return counted;
}

}  // namespace

Amounts AmountsOf(const job::Resources& resources) {
  Amounts amounts;
  amounts[0] = static_cast<int64_t>(std::ceil(resources.cpu_reserved() * 1000 - 1e-6));
  amounts[1] = (resources.memory_reserved() + 1023) / 1024;
  amounts[2] = int64_t{resources.gpu} * 1000;
  return amounts;
}

JobSpec SpecOf(const job::Job& job) {
  JobSpec spec;
  spec.name = job.name;
  spec.queue = job.queue;
  spec.priority = job.priority;
  spec.run_time = job.limits.deadline;
  spec.checkpoint = job.checkpoint.every;
  const job::Role* const counted = CountedRole(job);
  for (const job::Role& role : job.roles) {
    const Amounts task = AmountsOf(role.resources);
    spec.request.largest_task = Max(spec.request.largest_task, task);
    if (&role == counted) {
      spec.role = role.name;
      spec.tasks = role.replicas;
      spec.request.unit = task;
      spec.request.least = std::min(role.least(), role.most());
      spec.request.most = role.most();
    } else {
      // More than any machine has; the scheduler refuses it.
      spec.request.base = Min(spec.request.base + task * role.replicas, kNoLimit);
    }
  }
  return spec;
}

}  // namespace shoal::queue
