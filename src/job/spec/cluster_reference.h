// References in the values of a job's environment to what is known only when its cluster stands:
//
//   env: {PS_HOSTS: "{{shoal.addresses.ps}}", TASK_INDEX: "{{shoal.index}}"}
//
// so that programs of launchers that Shoal does not know find the variables that they read.
// validate.cc checks them with the file, the dialects fill them in (docs/job-file.md tells users).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::job {

enum class ReferenceTo : uint8_t {
  kText,       // no reference: `text` as it stands
  kIndex,      // the task's own index
  kHost,       // the task's own host
  kHosts,      // a role's hosts, in index order, with commas
  kAddresses,  // … with their first ports
  kCount,      // how many tasks a role has
};

struct ReferencePart {
  ReferenceTo to = ReferenceTo::kText;
  std::string text;  // kText: what stands there; kHosts, kAddresses, kCount: the role

  bool operator==(const ReferencePart&) const = default;
};

// True if there is anything to fill in.
bool HasReference(std::string_view value);

// The value cut at its references. InvalidArgument for "{{shoal." that is none, in words for after
// the variable's name. Roles are not checked. O(length).
Result<std::vector<ReferencePart>> ParseReferences(std::string_view value);

}  // namespace shoal::job
