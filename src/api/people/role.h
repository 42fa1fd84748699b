// Roles of people in teams, and the scopes of tokens.
//
// A request needs a role (in the team that owns what it touches) and a scope (of the token that it
// carries). Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::api {

// In ascending order: each role may do all that the ones before it may.
enum class Role : uint8_t {
  kNone,           // signed in, without a team
  kViewer,         // reads the jobs of the team
  kMember,         // submits jobs, and changes its own
  kOperator,       // changes every job of the team
  kAdministrator,  // of the whole server: people, teams, audit log
};

std::string_view NameOf(Role role);
// Only roles that a person can have in a team: viewer, member, operator.
std::optional<Role> ParseTeamRole(std::string_view name);

// A token restricts its user's rights to some of these.
enum class Scope : uint8_t {
  kJobsRead,     // "jobs:read": records, tasks, events
  kJobsWrite,    // "jobs:write": submit, stop, suspend, resume, scale
  kDataRead,     // "data:read": logs and outputs
  kPeopleRead,   // "people:read"
  kPeopleWrite,  // "people:write"
  kAuditRead,    // "audit:read"
};
inline constexpr int kScopes = 6;

std::string_view NameOf(Scope scope);
std::optional<Scope> ParseScope(std::string_view name);
// "jobs:read, jobs:write, …", for messages.
std::string ScopeNames();

// A set of scopes. Copyable value.
class ScopeSet {
 public:
  static ScopeSet All();
  void Add(Scope scope) { bits_ |= Bit(scope); }
  bool Has(Scope scope) const { return (bits_ & Bit(scope)) != 0; }
  // True if `other` has no scope that this one lacks.
  bool Covers(const ScopeSet& other) const { return (other.bits_ & ~bits_) == 0; }
  bool empty() const { return bits_ == 0; }
  std::vector<std::string> names() const;
  bool operator==(const ScopeSet&) const = default;

 private:
  static uint32_t Bit(Scope scope) { return 1U << static_cast<unsigned>(scope); }
  uint32_t bits_ = 0;
};

}  // namespace shoal::api
