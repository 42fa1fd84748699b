// Environment of framework rabit: the DMLC_… variables with which workers of rabit and XGBoost find
// their tracker, the job's role `tracker`.
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
