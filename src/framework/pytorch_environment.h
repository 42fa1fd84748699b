// Environment of framework pytorch: the variables that torchrun gives to its processes, so that
// init_process_group("env://") forms the process group.
//
// Source: torch/distributed/elastic/agent/server/local_elastic_agent.py, torch/distributed/run.py.
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

class PytorchEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kPytorch; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
  Status AddProcessVariables(const job::Job& job, const ClusterDescription& cluster,
                             const TaskContext& task, int local_rank,
                             Environment* env) const override;
};

}  // namespace shoal::framework
