// The people of a server: users, service accounts, teams and tokens, over the store's records.
//
// Used by the REST handlers (api/server), which check roles and scopes first and write the audit
// log; this class checks what must hold for every caller.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/people/identity.h"
#include "api/people/principal.h"
#include "base/clock.h"
#include "base/status.h"
#include "controller/store/records.h"

namespace shoal::api {

inline constexpr const char* kFirstUser = "admin";
inline constexpr const char* kFirstTeam = "default";

// What a new token is to be. `lifetime` none: it does not expire.
struct TokenRequest {
  std::string user;
  std::string name;
  ScopeSet scopes;
  std::optional<Duration> lifetime;
  bool sign_in = false;  // of a sign-in, or asked for with such a token
};

struct NewToken {
  Token token;
  std::string text;  // shown once; only its digest is stored
};

// Fields of a user that a request changes; those that are not set stay.
struct UserChange {
  std::optional<bool> administrator;
  std::optional<bool> disabled;
  std::optional<std::string> subject;
};

// A user whom a provider (api/oidc) has signed in. Plain value.
struct ExternalUser {
  std::string name;
  std::string subject;                // User::subject
  std::map<std::string, Role> teams;  // of the teams that the provider decides about; kNone: not in
  std::optional<bool> administrator;  // none: the provider does not decide
};

// One page of a list. `next` empty: the last page.
template <typename T>
struct PageOf {
  std::vector<T> items;
  std::string next;
};

// Thread-safe. Concurrent changes of one record are ordered by its version: the later one gets
// Aborted and may be repeated.
class People {
 public:
  // Both must outlive it.
  People(controller::Records* records, const Clock* clock) : records_(records), clock_(clock) {}

  // Makes the first administrator, the team `default` and a token, if the server has no user yet;
  // otherwise nullopt. A call that was interrupted is completed by the next.
  Result<std::optional<std::string>> MakeFirstAdministrator();

  // The user and rights of a token. Unauthenticated, with one sentence that does not tell which
  // part is wrong, for an unknown, expired or revoked token and a disabled user. Stores the last
  // use, at most once a minute.
  Result<Principal> Authenticate(std::string_view token);

  // Whether the token and the user of `principal` still exist, unexpired, with the rights that it
  // has. True if the store cannot be read.
  bool IsValid(const Principal& principal);

  Result<User> CreateUser(const User& user);
  Result<User> GetUser(const std::string& name);
  Result<PageOf<User>> ListUsers(const std::string& after, int limit);
  // FailedPrecondition for the last administrator who would no longer be one.
  Result<User> ChangeUser(const std::string& name, const UserChange& change);
  // Makes the user, or brings it up to date, and removes its expired tokens. PermissionDenied if
  // the user is disabled, or the name is one that another way of signing in has.
  Result<User> SignInExternal(const ExternalUser& external);
  // With all its tokens. Its jobs stay its team's.
  Status RemoveUser(const std::string& name);

  Result<Team> CreateTeam(const std::string& name);
  Result<Team> GetTeam(const std::string& name);
  Result<PageOf<Team>> ListTeams(const std::string& after, int limit);
  // FailedPrecondition while a user is in it.
  Status RemoveTeam(const std::string& name);
  // kNone removes the user from the team.
  Result<User> SetMembership(const std::string& team, const std::string& user, Role role);
  Result<std::map<std::string, Role>> Members(const std::string& team);

  // InvalidArgument without scopes; ResourceExhausted beyond 100 tokens of one user.
  Result<NewToken> CreateToken(const TokenRequest& request);
  Result<Token> GetToken(const std::string& id);
  // Of one user, or of all users if empty.
  Result<PageOf<Token>> ListTokens(const std::string& user, const std::string& after, int limit);
  Status RevokeToken(const std::string& id);

 private:
  Result<std::vector<User>> AllUsers();
  // The user of this subject; none if neither it nor the name is known.
  Result<std::optional<User>> FindExternal(const ExternalUser& external);
  Status RemoveExpired(const std::string& user);
  Result<bool> IsLastAdministrator(const std::string& name);
  Status NoteUse(const controller::Record& record, Token token, WallTime now);

  controller::Records* const records_;
  const Clock* const clock_;
};

}  // namespace shoal::api
