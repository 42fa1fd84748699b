// References to the cluster in the values of a job's environment, resolved when the tasks are
// placed:
//
//     env: {PS_HOSTS: "{{shoal.addresses.ps}}", TASK_INDEX: "{{shoal.index}}"}
//
// Programs written for other launchers find the variables that they read. validate.cc checks the
// references with the job file; src/framework resolves them. docs/job-file.md documents the syntax
// for users.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::job {

enum class ReferenceTo : uint8_t {
  kText,       // literal text
  kIndex,      // index of the task itself
  kHost,       // host of the task itself
  kHosts,      // comma-separated hosts of a role, in index order
  kAddresses,  // comma-separated HOST:PORT of a role; the port is each task's first
  kCount,      // number of tasks of a role
};

struct ReferencePart {
  ReferenceTo to = ReferenceTo::kText;
  std::string text;  // kText: the literal text; kHosts, kAddresses, kCount: the role's name

  bool operator==(const ReferencePart&) const = default;
};

// True if the value contains a reference.
bool HasReference(std::string_view value);

// The value with which a text stays as it is: "{{shoal." becomes "{{shoal.braces}}shoal.".
std::string EscapeReferences(std::string_view text);

// Splits the value into literal parts and references. InvalidArgument for a malformed "{{shoal."
// reference; the message continues a sentence that begins with the variable's name. Does not check
// that roles exist. O(length).
Result<std::vector<ReferencePart>> ParseReferences(std::string_view value);

}  // namespace shoal::job
