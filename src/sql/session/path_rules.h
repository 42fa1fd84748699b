// Which files the statements of a session may use, where the session runs for another person: at a
// server. Links are followed before a path is compared.
//
// The system's rights decide first; these rules narrow them. A path may change between the check
// and its use, so they are a limit for people who may run programs as the same user anyway.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::sql {

// Absolute directories. Plain value.
struct PathRules {
  std::vector<std::string> own;      // always allowed
  std::vector<std::string> allowed;  // besides; none: everything that is not denied
  std::vector<std::string> denied;

  // `path`: relative to the working directory, a pattern, or a URI, which is refused.
  // PermissionDenied says what is allowed.
  Status Check(const std::string& path) const;
};

}  // namespace shoal::sql
