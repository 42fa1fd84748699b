// The dialect of framework paddle: what paddle.distributed.launch finds, as Kubeflow's PaddleJob
// sets it, and what a program that is started without it reads.
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
