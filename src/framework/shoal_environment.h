// The dialects of framework shoal (our own trainers) and generic (anybody's program that reads the
// SHOAL_… variables itself).
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

// Adds SHOAL_LEARN, SHOAL_DATA, SHOAL_OUTPUTS and SHOAL_CHECKPOINT, each a JSON text.
class ShoalEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kShoal; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
};

// Adds nothing to the common variables.
class GenericEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kGeneric; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
};

}  // namespace shoal::framework
