// Environment of framework jax: the variables that jax.distributed.initialize() reads, under JAX's
// own names and under those that Kubeflow's JAXJob sets.
//
// Source: jax/_src/distributed.py, jax/_src/clusters; training-operator, pkg/controller.v1/jax.
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

class JaxEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kJax; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
  Status AddProcessVariables(const job::Job& job, const ClusterDescription& cluster,
                             const TaskContext& task, int local_rank,
                             Environment* env) const override;
};

}  // namespace shoal::framework
