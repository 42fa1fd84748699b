#include <algorithm>
#include <optional>
#include <utility>

#include "api/oidc/sign_in.h"
#include "api/server/handlers.h"
#include "base/clock.h"
#include "base/log.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int kCreated = 201;
constexpr int kNoContent = 204;
constexpr int64_t kNinetyDays = int64_t{90} * 86400;

json::value TimeText(WallTime time) { return json::value(FormatWall(time)); }

json::object UserReply(const User& user) {
  json::object object = ToJson(user);
  object["created"] = TimeText(user.created);
  return object;
}

json::object TokenReply(const Token& token) {
  json::object object = ToPublicJson(token);
  object["created"] = TimeText(token.created);
  if (token.expires) object["expires"] = TimeText(*token.expires);
  if (token.last_used) object["last_used"] = TimeText(*token.last_used);
  return object;
}

json::object TeamReply(const Team& team) {
  return {{"name", team.name}, {"created", TimeText(team.created)}};
}

template <typename T, typename Format>
void AnswerPage(const CallPtr& call, const Result<PageOf<T>>& page, Format format) {
  if (!page.ok()) return call->answer(QueryProblem(page.status()));
  json::array items;
  for (const T& item : page->items) items.push_back(format(item));
  json::object object{{"items", std::move(items)}};
  if (!page->next.empty()) object["next"] = page->next;
  call->answer(JsonReply(kOk, object));
}

int LimitOf(const Call& call) {
  return static_cast<int>(call.arguments.Integer("limit", kDefaultPage));
}

void AnswerNothing(const CallPtr& call, const Status& done) {
  if (!done.ok()) return call->answer(Problem(done));
  call->answer({kNoContent, {}, ""});
}

void AnswerUser(const CallPtr& call, int status, const Result<User>& user) {
  if (!user.ok()) return call->answer(Problem(user.status()));
  call->answer(JsonReply(status, UserReply(*user)));
}

// The user whose tokens a request is about; PermissionDenied for another one's.
Result<std::string> TokenOwner(const Call& call) {
  const std::string named = call.arguments.Text("user");
  if (named.empty() || named == call.principal.user) return call.principal.user;
  if (call.principal.administrator) return named;
  return PermissionDenied("only an administrator may see and make tokens of other users");
}

// What a sign-in has given ends with it: tokens that outlive it would outlive the person's rights
// at the provider.
Result<Duration> LifetimeOf(const Call& call, const std::string& owner, WallTime now) {
  const Duration wanted = std::chrono::seconds(call.arguments.Integer("seconds", kNinetyDays));
  const std::optional<WallTime> until = call.principal.signed_in_until;
  if (!until || owner != call.principal.user) return wanted;
  const Duration most = *until - now;
  if (call.arguments.Has("seconds") && wanted > most)
    return PermissionDenied("a token of a sign-in cannot make one that is valid longer, until " +
                            FormatWall(*until) +
                            "; sign in again, or ask an administrator for a token");
  return std::min(wanted, most);
}

Status RemoveSecrets(controller::SecretVault* vault, const std::string& team) {
  TRY_ASSIGN(const auto secrets, vault->List(team));
  for (const controller::SecretInfo& secret : secrets) TRY(vault->Remove(team, secret.name));
  return Status::Ok();
}

// ---- Sign-ins ----

constexpr int kAccepted = 202;
constexpr int kTooMany = 429;

int64_t SecondsOf(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

void Refuse(const CallPtr& call, const Status& why) {
  net::HttpServerReply reply =
      why.code() == Code::kResourceExhausted ? Problem(kTooMany, why.message()) : Problem(why);
  if (why.code() == Code::kResourceExhausted || why.code() == Code::kUnavailable)
    reply.headers.emplace_back("Retry-After", "5");
  call->answer(std::move(reply));
}

// False after an answer: the server has no provider.
bool HasProvider(const Backend& backend, const CallPtr& call) {
  if (backend.sign_in != nullptr) return true;
  Refuse(call, NotFound("this server has no OpenID Connect provider; sign in with a token, or ask "
                        "its administrator for `shoal server --oidc FILE`"));
  return false;
}

// The audit log has sign-ins that gave a token; others are as many as a stranger likes, and only in
// the server's own log.
Status NoteSignIn(const Backend& backend, const CallPtr& call, const Token& token) {
  controller::AuditEntry entry;
  entry.time = backend.clock->Wall();
  entry.actor = token.user;
  entry.action = call->route->name;
  entry.object = token.id;
  entry.detail = {{"token", token.id}, {"peer", call->request().peer}};
  return backend.audit->Append({&entry, 1});
}

void AnswerToken(const Backend& backend, const CallPtr& call, const Result<NewToken>& made) {
  if (!made.ok()) {
    LogInfo("a sign-in of {} was refused: {}", call->request().peer, made.status().message());
    return Refuse(call, made.status());
  }
  if (const Status noted = NoteSignIn(backend, call, made->token); !noted.ok()) {
    (void)backend.people->RevokeToken(made->token.id);
    return Refuse(call, Unavailable("the audit log cannot be written: " + noted.message()));
  }
  json::object reply = ToPublicJson(made->token);
  reply["created"] = FormatWall(made->token.created);
  if (made->token.expires) reply["expires"] = FormatWall(*made->token.expires);
  reply.erase("last_used");
  reply["token"] = made->text;
  call->answer(JsonReply(kCreated, reply));
}

}  // namespace

void ListUsers(const Backend& backend, const CallPtr& call) {
  AnswerPage(call, backend.people->ListUsers(call->arguments.Text("after"), LimitOf(*call)),
             UserReply);
}

void CreateUser(const Backend& backend, const CallPtr& call) {
  User user;
  user.name = call->arguments.Text("name");
  user.administrator = call->arguments.Boolean("administrator", false);
  user.service = call->arguments.Boolean("service", false);
  call->target = user.name;
  call->details = {{"administrator", user.administrator}, {"service", user.service}};
  AnswerUser(call, kCreated, backend.people->CreateUser(user));
}

void GetUser(const Backend& backend, const CallPtr& call) {
  AnswerUser(call, kOk, backend.people->GetUser(call->arguments.PathText("name")));
}

void ChangeUser(const Backend& backend, const CallPtr& call) {
  UserChange change;
  for (const auto& [name, field] : {std::pair{"administrator", &change.administrator},
                                    std::pair{"disabled", &change.disabled}}) {
    if (!call->arguments.Has(name)) continue;
    *field = call->arguments.Boolean(name, false);
    call->details[name] = **field;
  }
  if (call->arguments.Has("subject")) {
    change.subject = call->arguments.Text("subject");
    call->details["subject"] = *change.subject;
  }
  call->target = call->arguments.PathText("name");
  AnswerUser(call, kOk, backend.people->ChangeUser(call->target, change));
}

void RemoveUser(const Backend& backend, const CallPtr& call) {
  call->target = call->arguments.PathText("name");
  AnswerNothing(call, backend.people->RemoveUser(call->target));
}

void ListTeams(const Backend& backend, const CallPtr& call) {
  AnswerPage(call, backend.people->ListTeams(call->arguments.Text("after"), LimitOf(*call)),
             TeamReply);
}

void CreateTeam(const Backend& backend, const CallPtr& call) {
  call->target = call->arguments.Text("name");
  const Result<Team> team = backend.people->CreateTeam(call->target);
  if (!team.ok()) return call->answer(Problem(team.status()));
  call->answer(JsonReply(kCreated, TeamReply(*team)));
}

void GetTeam(const Backend& backend, const CallPtr& call) {
  const Result<Team> team = backend.people->GetTeam(call->team);
  if (!team.ok()) return call->answer(Problem(team.status()));
  const auto members = backend.people->Members(call->team);
  if (!members.ok()) return call->answer(Problem(members.status()));
  json::object list;
  for (const auto& [user, role] : *members) list[user] = NameOf(role);
  json::object object = TeamReply(*team);
  object["members"] = std::move(list);
  call->answer(JsonReply(kOk, object));
}

void RemoveTeam(const Backend& backend, const CallPtr& call) {
  call->target = call->arguments.PathText("team");
  const Status removed = backend.people->RemoveTeam(call->target);
  if (!removed.ok()) return AnswerNothing(call, removed);
  // A later team of this name must not inherit them.
  const Status policy = backend.policies->Remove(call->target);
  const Status secrets = RemoveSecrets(backend.secrets, call->target);
  if (!policy.ok() && policy.code() != Code::kNotFound) return AnswerNothing(call, policy);
  AnswerNothing(call, secrets);
}

void SetMember(const Backend& backend, const CallPtr& call) {
  const std::string role = call->arguments.Text("role");
  call->team = call->arguments.PathText("team");
  call->target = call->arguments.PathText("user");
  call->details = {{"role", role}};
  AnswerUser(call, kOk,
             backend.people->SetMembership(call->team, call->target,
                                           ParseTeamRole(role).value_or(Role::kViewer)));
}

void RemoveMember(const Backend& backend, const CallPtr& call) {
  call->team = call->arguments.PathText("team");
  call->target = call->arguments.PathText("user");
  AnswerNothing(call,
                backend.people->SetMembership(call->team, call->target, Role::kNone).status());
}

void ListTokens(const Backend& backend, const CallPtr& call) {
  const Result<std::string> owner = TokenOwner(*call);
  if (!owner.ok()) return call->answer(Problem(owner.status()));
  AnswerPage(call,
             backend.people->ListTokens(*owner, call->arguments.Text("after"), LimitOf(*call)),
             TokenReply);
}

void CreateToken(const Backend& backend, const CallPtr& call) {
  const Result<std::string> owner = TokenOwner(*call);
  if (!owner.ok()) return call->answer(Problem(owner.status()));
  TokenRequest request;
  request.user = *owner;
  request.name = call->arguments.Text("name");
  request.scopes = call->principal.scopes;
  if (call->arguments.Has("scopes")) request.scopes = ScopeSet();
  for (const std::string& name : call->arguments.Texts("scopes")) {
    const auto scope = ParseScope(name);
    if (!scope)
      return call->answer(
          Problem({FieldError{"scopes", "got " + name + ", expected some of " + ScopeNames()}}));
    request.scopes.Add(*scope);
  }
  if (!call->principal.scopes.Covers(request.scopes))
    return call->answer(
        Problem(PermissionDenied("a token cannot make one with scopes that it lacks itself")));
  const Result<Duration> lifetime = LifetimeOf(*call, *owner, backend.clock->Wall());
  if (!lifetime.ok()) return call->answer(Problem(lifetime.status()));
  request.lifetime = *lifetime;
  request.sign_in = call->principal.signed_in_until && *owner == call->principal.user;
  const Result<NewToken> made = backend.people->CreateToken(request);
  call->target = *owner;
  if (!made.ok()) return call->answer(Problem(made.status()));
  json::object object = TokenReply(made->token);
  call->details = {{"token", made->token.id}, {"scopes", object["scopes"]}};
  object["token"] = made->text;
  call->answer(JsonReply(kCreated, object));
}

void RevokeToken(const Backend& backend, const CallPtr& call) {
  const std::string id = call->arguments.PathText("id");
  const Result<Token> token = backend.people->GetToken(id);
  const bool allowed =
      token.ok() && (call->principal.administrator || token->user == call->principal.user);
  call->target = allowed ? token->user : id;
  call->details = {{"token", id}};
  if (!allowed) return call->answer(Problem(NotFound("there is no token " + id + " of yours")));
  AnswerNothing(call, backend.people->RevokeToken(id));
}

void ListSignIns(const Backend& backend, const CallPtr& call) {
  json::object reply{{"methods", json::array{"token"}}};
  if (backend.sign_in != nullptr) {
    reply["methods"].get_array().emplace_back("oidc");
    reply["issuer"] = backend.sign_in->config().issuer;
  }
  call->answer(JsonReply(kOk, reply));
}

void BeginDeviceSignIn(const Backend& backend, const CallPtr& call) {
  if (!HasProvider(backend, call)) return;
  const Result<StartedDevice> started = backend.sign_in->BeginDevice(call->request().peer);
  if (!started.ok()) return Refuse(call, started.status());
  json::object reply{{"device", started->handle},
                     {"user_code", started->grant.user_code},
                     {"verification_uri", started->grant.verification_uri},
                     {"expires_in", SecondsOf(started->grant.expires)},
                     {"interval", SecondsOf(started->grant.interval)}};
  if (!started->grant.complete_uri.empty())
    reply["verification_uri_complete"] = started->grant.complete_uri;
  call->answer(JsonReply(kCreated, reply));
}

void FinishDeviceSignIn(const Backend& backend, const CallPtr& call) {
  if (!HasProvider(backend, call)) return;
  Duration interval{};
  const Result<NewToken> made =
      backend.sign_in->FinishDevice(call->arguments.Text("device"), &interval);
  if (made.status().code() == Code::kFailedPrecondition)
    return call->answer(JsonReply(kAccepted, json::object{{"interval", SecondsOf(interval)}}));
  AnswerToken(backend, call, made);
}

void BeginCodeSignIn(const Backend& backend, const CallPtr& call) {
  if (!HasProvider(backend, call)) return;
  const Result<StartedCode> started =
      backend.sign_in->BeginCode(call->request().peer, call->arguments.Text("redirect_uri"));
  if (!started.ok()) return Refuse(call, started.status());
  call->answer(JsonReply(kCreated, json::object{{"url", started->url},
                                                {"state", started->state},
                                                {"binding", started->binding}}));
}

void FinishCodeSignIn(const Backend& backend, const CallPtr& call) {
  if (!HasProvider(backend, call)) return;
  AnswerToken(
      backend, call,
      backend.sign_in->FinishCode(call->arguments.Text("state"), call->arguments.Text("binding"),
                                  call->arguments.Text("code")));
}

}  // namespace shoal::api
