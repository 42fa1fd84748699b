// Environment of framework ps-lite, as used by MXNet, BytePS and others: DMLC_… and PS_… variables.
//
// Source: ps-lite src/van.cc and src/postoffice.cc, docs/env.md.
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

class PsLiteEnvironment final : public FrameworkEnvironment {
 public:
  job::Framework framework() const override { return job::Framework::kPsLite; }
  Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                      const TaskContext& task, Environment* env) const override;
};

}  // namespace shoal::framework
