// The dialect of framework ps-lite, which MXNet, BytePS and others carry: DMLC_… and PS_…
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
