// Environment of framework paddle: the variables that Kubeflow's PaddleJob sets for
// paddle.distributed.launch, and those that a program started without the launcher reads.
//
// Source: training-operator, pkg/controller.v1/paddlepaddle/envvar.go;
// python/paddle/distributed/launch and parallel.py.
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

class PaddleEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kPaddle; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
};

}  // namespace shoal::framework
