// The user behind a request, with the rights that its token gives. Plain, copyable value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/people/role.h"
#include "base/clock.h"

namespace shoal::api {

struct Principal {
  std::string user;
  std::string token_id;
  bool administrator = false;
  std::map<std::string, Role> teams;
  ScopeSet scopes;
  // The end of a token that a sign-in gave, or that was made by such a token.
  std::optional<WallTime> signed_in_until;

  // kNone for a team that it is not in.
  Role RoleIn(const std::string& team) const {
    if (administrator) return Role::kAdministrator;
    const auto found = teams.find(team);
    return found == teams.end() ? Role::kNone : found->second;
  }
  // The highest role that it has anywhere.
  Role BestRole() const {
    Role best = administrator ? Role::kAdministrator : Role::kNone;
    for (const auto& [team, role] : teams) best = role > best ? role : best;
    return best;
  }
};

}  // namespace shoal::api
