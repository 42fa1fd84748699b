// Environment of framework tensorflow: TF_CONFIG, as Kubeflow's TFJob sets it.
//
// Source: TFConfigClusterResolver of TensorFlow 2; training-operator v1.9,
// pkg/controller.v1/tensorflow/tensorflow.go.
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

class TensorflowEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kTensorflow; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
};

}  // namespace shoal::framework
