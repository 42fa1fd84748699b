// Environment of framework spark: a standalone Spark cluster inside the job. Its master and workers
// stop when the driver ends.
//
// Source: Spark 3.5 sbin/start-{master,worker}.sh, core/…/deploy/{master/Master,worker/Worker}
// Arguments.scala, SparkSubmitArguments.scala (MASTER).
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

class SparkEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kSpark; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
};

}  // namespace shoal::framework
