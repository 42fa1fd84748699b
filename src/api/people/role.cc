#include "api/people/role.h"

#include <array>

namespace shoal::api {
namespace {

constexpr std::array<std::string_view, 5> kRoleNames = {"none", "viewer", "member", "operator",
                                                        "administrator"};
constexpr std::array<std::string_view, kScopes> kScopeNames = {
    "jobs:read", "jobs:write", "data:read", "people:read", "people:write", "audit:read"};

}  // namespace

std::string_view NameOf(Role role) { return kRoleNames[static_cast<size_t>(role)]; }

std::optional<Role> ParseTeamRole(std::string_view name) {
  for (const Role role : {Role::kViewer, Role::kMember, Role::kOperator}) {
    if (NameOf(role) == name) return role;
  }
  return std::nullopt;
}

std::string_view NameOf(Scope scope) { return kScopeNames[static_cast<size_t>(scope)]; }

std::optional<Scope> ParseScope(std::string_view name) {
  for (size_t i = 0; i < kScopeNames.size(); ++i) {
    if (kScopeNames[i] == name) return static_cast<Scope>(i);
  }
  return std::nullopt;
}

std::string ScopeNames() {
  std::string names;
  for (const std::string_view name : kScopeNames)
    names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

ScopeSet ScopeSet::All() {
  ScopeSet all;
  all.bits_ = (1U << kScopes) - 1;
  return all;
}

std::vector<std::string> ScopeSet::names() const {
  std::vector<std::string> names;
  for (int i = 0; i < kScopes; ++i) {
    const auto scope = static_cast<Scope>(i);
    if (Has(scope)) names.emplace_back(NameOf(scope));
  }
  return names;
}

}  // namespace shoal::api
