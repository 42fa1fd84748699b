// The dialect of framework rabit: the DMLC_… by which rabit's and XGBoost's workers find their
// tracker, which is role `tracker` of the job.
//
// Source: dmlc-core tracker/dmlc_tracker/{tracker,local}.py; XGBoost python-package collective.py.
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

class RabitEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kRabit; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
  Status AddProcessVariables(const job::Job& job, const ClusterDescription& cluster,
                             const TaskContext& task, int local_rank,
                             Environment* env) const override;
};

}  // namespace shoal::framework
