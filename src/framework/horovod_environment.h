// Environment of framework horovod with Gloo: each process's rank in Horovod's three groups
// (global, local, cross), and the address of the key-value store through which the groups form. The
// store is the job's role `rendezvous`.
//
// Source: Horovod 0.28.1 horovod/runner/gloo_run.py, horovod/common/gloo/gloo_context.cc.
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

class HorovodEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kHorovod; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
  Status AddProcessVariables(const job::Job& job, const ClusterDescription& cluster,
                             const TaskContext& task, int local_rank,
                             Environment* env) const override;
};

}  // namespace shoal::framework
