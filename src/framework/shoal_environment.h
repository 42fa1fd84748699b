// Environments of framework shoal (the built-in trainers) and of framework generic (any program
// that reads the SHOAL_… variables itself).
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

// Adds SHOAL_LEARN, SHOAL_DATA, SHOAL_OUTPUTS and SHOAL_CHECKPOINT as JSON texts, and SHOAL_CPUS if
// the role has a processor limit.
class ShoalEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kShoal; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
};

// Adds only SHOAL_CHECKPOINT, if the job takes checkpoints.
class GenericEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kGeneric; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
};

}  // namespace shoal::framework
