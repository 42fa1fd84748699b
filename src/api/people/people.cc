#include "api/people/people.h"

#include <algorithm>
#include <utility>

#include "base/id.h"

namespace shoal::api {
namespace {

using controller::Record;

constexpr const char* kUser = "user";
constexpr const char* kTeam = "team";
constexpr const char* kToken = "token";
constexpr int kAllPage = 1000;
constexpr int kMaxTokens = 100;
constexpr std::chrono::minutes kUseInterval{1};

const Status& NotSignedIn() {
  static const Status status = Unauthenticated(
      "the token is missing, unknown, expired or revoked; `shoal login` stores a new one");
  return status;
}

template <typename T, typename Parse>
Result<PageOf<T>> Page(controller::Records* records, const char* kind, const std::string& after,
                       int limit, Parse parse) {
  TRY_ASSIGN(const controller::RecordPage found, records->List(kind, "", after, limit));
  PageOf<T> page;
  for (const Record& record : found.records) {
    TRY_ASSIGN(T item, parse(record.body));
    page.items.push_back(std::move(item));
  }
  page.next = found.next;
  return page;
}

}  // namespace

Result<std::optional<std::string>> People::MakeFirstAdministrator() {
  TRY_ASSIGN(const PageOf<User> users, ListUsers("", 1));
  if (!users.items.empty()) return std::optional<std::string>();
  const Status team = CreateTeam(kFirstTeam).status();
  if (!team.ok() && team.code() != Code::kAlreadyExists) return team;
  // The token first: a user without one would keep the next start from making it.
  Token token;
  const TokenText text = NewTokenText();
  token.id = text.id;
  token.user = kFirstUser;
  token.name = "made by the first start";
  token.digest = Sha256Hex(text.secret);
  token.scopes = ScopeSet::All();
  token.created = clock_->Wall();
  TRY(records_->Put(kToken, token.id, ToJson(token), controller::kAbsent, clock_->Wall()).status());
  User user;
  user.name = kFirstUser;
  user.administrator = true;
  user.teams[kFirstTeam] = Role::kOperator;
  TRY(CreateUser(user).status());
  return std::optional<std::string>(TextOf(text));
}

Result<Principal> People::Authenticate(std::string_view text) {
  const std::optional<TokenText> parts = ParseTokenText(text);
  if (!parts) return NotSignedIn();
  const Result<Record> record = records_->Get(kToken, parts->id);
  if (!record.ok() && record.status().code() != Code::kNotFound) return record.status();
  // An unknown id costs the same work as a wrong secret.
  const std::string digest = Sha256Hex(parts->secret);
  if (!record.ok()) return NotSignedIn();
  TRY_ASSIGN(Token token, ParseToken(record->body));
  const WallTime now = clock_->Wall();
  const bool expired = token.expires && now >= *token.expires;
  if (!EqualInConstantTime(digest, token.digest) || expired) return NotSignedIn();
  const Result<User> user = GetUser(token.user);
  if (!user.ok() && user.status().code() != Code::kNotFound) return user.status();
  if (!user.ok() || user->disabled) return NotSignedIn();
  Principal principal;
  principal.user = user->name;
  principal.token_id = token.id;
  principal.administrator = user->administrator;
  principal.teams = user->teams;
  principal.scopes = token.scopes;
  if (token.sign_in) principal.signed_in_until = token.expires;
  TRY(NoteUse(*record, std::move(token), now));
  return principal;
}

bool People::IsValid(const Principal& principal) {
  const Result<Token> token = GetToken(principal.token_id);
  const Result<User> user = GetUser(principal.user);
  for (const Status& status : {token.status(), user.status()}) {
    if (status.code() == Code::kNotFound) return false;
    if (!status.ok()) return true;
  }
  const bool expired = token->expires && clock_->Wall() >= *token->expires;
  return !expired && !user->disabled && user->teams == principal.teams &&
         user->administrator == principal.administrator;
}

Status People::NoteUse(const Record& record, Token token, WallTime now) {
  if (token.last_used && now - *token.last_used < kUseInterval) return Status::Ok();
  token.last_used = std::chrono::floor<std::chrono::minutes>(now);
  const Status stored =
      records_->Put(kToken, token.id, ToJson(token), record.version, now).status();
  // A concurrent request has written it, or the token was revoked meanwhile.
  if (stored.code() == Code::kAborted || stored.code() == Code::kNotFound) return Status::Ok();
  return stored.code() == Code::kUnavailable || stored.code() == Code::kResourceExhausted
             ? Status::Ok()  // a full disk must not keep users from reading
             : stored;
}

Result<User> People::CreateUser(const User& user) {
  TRY(CheckName("user", user.name));
  User made = user;
  made.created = clock_->Wall();
  const Status stored =
      records_->Put(kUser, made.name, ToJson(made), controller::kAbsent, clock_->Wall()).status();
  if (stored.code() == Code::kAlreadyExists || stored.code() == Code::kAborted)
    return AlreadyExists("there is a user " + made.name + " already");
  TRY(stored);
  return made;
}

Result<User> People::GetUser(const std::string& name) {
  const Result<Record> record = records_->Get(kUser, name);
  if (record.status().code() == Code::kNotFound) return NotFound("there is no user " + name);
  TRY(record.status());
  return ParseUser(record->body);
}

Result<PageOf<User>> People::ListUsers(const std::string& after, int limit) {
  return Page<User>(records_, kUser, after, limit, ParseUser);
}

Result<std::vector<User>> People::AllUsers() {
  std::vector<User> all;
  std::string after;
  do {
    TRY_ASSIGN(PageOf<User> page, ListUsers(after, kAllPage));
    std::ranges::move(page.items, std::back_inserter(all));
    after = page.next;
  } while (!after.empty());
  return all;
}

Result<bool> People::IsLastAdministrator(const std::string& name) {
  TRY_ASSIGN(const std::vector<User> users, AllUsers());
  return std::ranges::none_of(users, [&](const User& user) {
    return user.name != name && user.administrator && !user.disabled;
  });
}

Result<User> People::ChangeUser(const std::string& name, const UserChange& change) {
  const Result<Record> record = records_->Get(kUser, name);
  if (record.status().code() == Code::kNotFound) return NotFound("there is no user " + name);
  TRY(record.status());
  TRY_ASSIGN(User user, ParseUser(record->body));
  const bool was = user.administrator && !user.disabled;
  user.administrator = change.administrator.value_or(user.administrator);
  user.disabled = change.disabled.value_or(user.disabled);
  user.subject = change.subject.value_or(user.subject);
  if (was && (!user.administrator || user.disabled)) {
    TRY_ASSIGN(const bool last, IsLastAdministrator(name));
    if (last)
      return FailedPrecondition(name +
                                " is the last administrator; make another one before this change");
  }
  TRY(records_->Put(kUser, name, ToJson(user), record->version, clock_->Wall()).status());
  return user;
}

Result<std::optional<User>> People::FindExternal(const ExternalUser& external) {
  TRY_ASSIGN(const std::vector<User> users, AllUsers());
  for (const User& user : users) {
    if (user.subject == external.subject) return std::optional(user);
  }
  for (const User& user : users) {
    if (user.name == external.name)
      return PermissionDenied(
          "there is a user " + external.name +
          " whom this sign-in is not; an administrator joins the two by setting "
          "the user's subject (docs/oidc.md)");
  }
  return std::optional<User>();
}

Result<User> People::SignInExternal(const ExternalUser& external) {
  TRY_ASSIGN(const std::optional<User> known, FindExternal(external));
  User user = known.value_or(User{});
  if (!known) {
    user.name = external.name;
    user.subject = external.subject;
    TRY_ASSIGN(user, CreateUser(user));
  }
  const Result<Record> record = records_->Get(kUser, user.name);
  TRY(record.status());
  TRY_ASSIGN(user, ParseUser(record->body));
  if (user.disabled) return PermissionDenied("the user " + user.name + " is disabled");
  const User before = user;
  for (const auto& [team, role] : external.teams) {
    user.teams.erase(team);
    if (role != Role::kNone && GetTeam(team).ok()) user.teams[team] = role;
  }
  if (external.administrator) user.administrator = *external.administrator;
  if (before.administrator && !user.administrator) {
    TRY_ASSIGN(user.administrator, IsLastAdministrator(user.name));
  }
  if (ToJson(user) != ToJson(before))
    TRY(records_->Put(kUser, user.name, ToJson(user), record->version, clock_->Wall()).status());
  TRY(RemoveExpired(user.name));
  return user;
}

Status People::RemoveExpired(const std::string& user) {
  TRY_ASSIGN(const PageOf<Token> tokens, ListTokens(user, "", kAllPage));
  for (const Token& token : tokens.items) {
    if (token.expires && *token.expires <= clock_->Wall()) TRY(RevokeToken(token.id));
  }
  return Status::Ok();
}

Status People::RemoveUser(const std::string& name) {
  TRY_ASSIGN(const User user, GetUser(name));
  if (user.administrator) {
    TRY_ASSIGN(const bool last, IsLastAdministrator(name));
    if (last) return FailedPrecondition(name + " is the last administrator and cannot be removed");
  }
  // The user first: without it none of its tokens is accepted.
  TRY(records_->Delete(kUser, name, controller::kAnyVersion, clock_->Wall()));
  std::string after;
  do {
    TRY_ASSIGN(const PageOf<Token> page, ListTokens(name, after, kAllPage));
    for (const Token& token : page.items) TRY(RevokeToken(token.id));
    after = page.next;
  } while (!after.empty());
  return Status::Ok();
}

Result<Team> People::CreateTeam(const std::string& name) {
  TRY(CheckName("team", name));
  const Team team{name, clock_->Wall()};
  const Status stored =
      records_->Put(kTeam, name, ToJson(team), controller::kAbsent, clock_->Wall()).status();
  if (stored.code() == Code::kAlreadyExists || stored.code() == Code::kAborted)
    return AlreadyExists("there is a team " + name + " already");
  TRY(stored);
  return team;
}

Result<Team> People::GetTeam(const std::string& name) {
  const Result<Record> record = records_->Get(kTeam, name);
  if (record.status().code() == Code::kNotFound) return NotFound("there is no team " + name);
  TRY(record.status());
  return ParseTeam(record->body);
}

Result<PageOf<Team>> People::ListTeams(const std::string& after, int limit) {
  return Page<Team>(records_, kTeam, after, limit, ParseTeam);
}

Status People::RemoveTeam(const std::string& name) {
  TRY(GetTeam(name).status());
  TRY_ASSIGN(const auto members, Members(name));
  if (!members.empty())
    return FailedPrecondition("the team " + name + " has " + std::to_string(members.size()) +
                              " members, " + members.begin()->first +
                              " for example; take them out first");
  return records_->Delete(kTeam, name, controller::kAnyVersion, clock_->Wall());
}

Result<User> People::SetMembership(const std::string& team, const std::string& name, Role role) {
  TRY(GetTeam(team).status());
  const Result<Record> record = records_->Get(kUser, name);
  if (record.status().code() == Code::kNotFound) return NotFound("there is no user " + name);
  TRY(record.status());
  TRY_ASSIGN(User user, ParseUser(record->body));
  if (role == Role::kNone) {
    user.teams.erase(team);
  } else {
    user.teams[team] = role;
  }
  TRY(records_->Put(kUser, name, ToJson(user), record->version, clock_->Wall()).status());
  return user;
}

Result<std::map<std::string, Role>> People::Members(const std::string& team) {
  TRY_ASSIGN(const std::vector<User> users, AllUsers());
  std::map<std::string, Role> members;
  for (const User& user : users) {
    const auto found = user.teams.find(team);
    if (found != user.teams.end()) members[user.name] = found->second;
  }
  return members;
}

Result<NewToken> People::CreateToken(const TokenRequest& request) {
  if (request.scopes.empty())
    return InvalidArgument("scopes: got none, expected some of " + ScopeNames());
  TRY(GetUser(request.user).status());
  TRY_ASSIGN(const PageOf<Token> present, ListTokens(request.user, "", kAllPage));
  if (present.items.size() >= kMaxTokens)
    return ResourceExhausted(request.user + " has " + std::to_string(kMaxTokens) +
                             " tokens; revoke some");
  const TokenText text = NewTokenText();
  Token token;
  token.id = text.id;
  token.user = request.user;
  token.name = request.name;
  token.digest = Sha256Hex(text.secret);
  token.scopes = request.scopes;
  token.created = clock_->Wall();
  token.sign_in = request.sign_in;
  if (request.lifetime)
    token.expires =
        token.created + std::chrono::duration_cast<WallTime::duration>(*request.lifetime);
  TRY(records_->Put(kToken, token.id, ToJson(token), controller::kAbsent, clock_->Wall()).status());
  return NewToken{token, TextOf(text)};
}

Result<Token> People::GetToken(const std::string& id) {
  const Result<Record> record = records_->Get(kToken, id);
  if (record.status().code() == Code::kNotFound) return NotFound("there is no token " + id);
  TRY(record.status());
  return ParseToken(record->body);
}

Result<PageOf<Token>> People::ListTokens(const std::string& user, const std::string& after,
                                         int limit) {
  PageOf<Token> chosen;
  std::string from = after;
  do {
    TRY_ASSIGN(PageOf<Token> page, Page<Token>(records_, kToken, from, kAllPage, ParseToken));
    for (Token& token : page.items) {
      if (!user.empty() && token.user != user) continue;
      if (static_cast<int>(chosen.items.size()) == limit) {
        chosen.next = chosen.items.back().id;
        return chosen;
      }
      chosen.items.push_back(std::move(token));
    }
    from = page.next;
  } while (!from.empty());
  return chosen;
}

Status People::RevokeToken(const std::string& id) {
  return records_->Delete(kToken, id, controller::kAnyVersion, clock_->Wall());
}

}  // namespace shoal::api
