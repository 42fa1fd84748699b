#include "api/server/rest_server.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "api/rest/job_json.h"
#include "api/rest/problem.h"
#include "api/server/handlers.h"
#include "base/log.h"

namespace shoal::api {
namespace {

using net::HttpExchange;
using net::HttpServerReply;
using net::HttpServerRequest;

constexpr int kForbidden = 403;
constexpr int kNotFound = 404;
constexpr int kUnavailable = 503;
constexpr int kChanged = 412;
constexpr int kOk = 200;
constexpr int kFirstError = 400;
// Larger bodies are read for users only.
constexpr size_t kAnonymousBody = size_t{64} << 10;
constexpr std::string_view kTokenProtocol = "shoal.token.";

bool Changes(const HttpServerRequest& request) {
  return request.method != "GET" && request.method != "HEAD";
}

std::string NoJob(const std::string& id) {
  return "there is no job " + id + " that you may see; `shoal jobs --all` lists them";
}

// The team that a request without one means: the user's only team, else the first one's.
std::string UsualTeam(const Principal& principal) {
  if (principal.teams.size() == 1) return principal.teams.begin()->first;
  return kFirstTeam;
}

std::string RoleSentence(const Call& call, Role has) {
  const std::string where = call.team.empty() ? "" : " in the team " + call.team;
  return "this needs the role " + std::string(NameOf(call.route->role)) + where + ", and " +
         call.principal.user + " has " + (has == Role::kNone ? "none" : std::string(NameOf(has)));
}

std::optional<HttpServerReply> CheckMatch(const Call& call) {
  const std::string_view wanted = call.request().Header("if-match");
  if (!call.route->conditional || !call.job || wanted.empty() || wanted == "*") return std::nullopt;
  const std::string now = ETagOf(*call.job);
  std::string_view rest = wanted;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    std::string_view one = rest.substr(0, comma);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one == now) return std::nullopt;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return Problem(kChanged, "job " + call.job->id + " has changed: got If-Match " +
                               std::string(wanted.substr(0, 64)) + ", its ETag is " + now +
                               "; read it again");
}

}  // namespace

std::string TokenOf(const HttpServerRequest& request) {
  constexpr std::string_view kBearer = "bearer ";
  const std::string_view header = request.Header("authorization");
  const bool bearer =
      header.size() > kBearer.size() &&
      std::equal(kBearer.begin(), kBearer.end(), header.begin(), [](char a, char b) {
        return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
      });
  if (bearer) return std::string(header.substr(kBearer.size()));
  if (!request.websocket) return "";
  const std::string_view protocols = request.Header("sec-websocket-protocol");
  const size_t at = protocols.find(kTokenProtocol);
  if (at == std::string_view::npos) return "";
  const std::string_view token = protocols.substr(at + kTokenProtocol.size());
  return std::string(token.substr(0, token.find_first_of(", ")));
}

RestServer::RestServer(Backend backend, RestServerOptions options)
    : backend_(std::move(backend)),
      options_(std::move(options)),
      throttle_(backend_.clock),
      pool_(options_.threads) {
  backend_.defer = [this](std::function<void()> task) { return Defer(std::move(task)); };
}

bool RestServer::Defer(std::function<void()> task) {
  if (waiting_.fetch_add(1) >= options_.max_queued) {
    --waiting_;
    return false;
  }
  pool_.Execute([this, task = std::move(task)] {
    task();
    --waiting_;
  });
  return true;
}

std::function<void(std::shared_ptr<HttpExchange>)> RestServer::handler() {
  return [this](std::shared_ptr<HttpExchange> exchange) { OnRequest(exchange); };
}

std::function<net::HttpBodyLimit(const HttpServerRequest&)> RestServer::max_body() {
  return [this](const HttpServerRequest& request) -> net::HttpBodyLimit {
    auto found = FindMatch(request);
    if (auto* reply = std::get_if<HttpServerReply>(&found)) return std::move(*reply);
    const size_t most = std::get<Match>(found).route->max_body;
    if (most <= kAnonymousBody) return most;
    const Result<Principal> principal = backend_.people->Authenticate(TokenOf(request));
    if (principal.ok()) return most;
    throttle_.CountFailure(request.peer);
    return Problem(principal.status());
  };
}

void RestServer::OnRequest(const std::shared_ptr<HttpExchange>& exchange) {
  if (auto reply = page_.Reply(exchange->request())) {
    exchange->Reply(std::move(*reply));
    return;
  }
  auto found = FindMatch(exchange->request());
  if (auto* reply = std::get_if<HttpServerReply>(&found)) {
    exchange->Reply(std::move(*reply));
    return;
  }
  const Match match = std::get<Match>(std::move(found));
  if (Defer([this, exchange, match] { Answer(exchange, match); })) return;
  HttpServerReply busy = Problem(kUnavailable, "the server is busy; try again");
  busy.headers.emplace_back("Retry-After", "1");
  exchange->Reply(std::move(busy));
}

void RestServer::Refuse(const std::shared_ptr<HttpExchange>& exchange, const Status& why) {
  const HttpServerReply reply = Problem(why);
  // A request without a token guesses nothing.
  const bool guess = why.code() == Code::kUnauthenticated && !TokenOf(exchange->request()).empty();
  const Duration delay = guess ? throttle_.CountFailure(exchange->request().peer) : Duration(0);
  if (delay == Duration(0) || !options_.later) {
    exchange->Reply(reply);
    return;
  }
  options_.later(delay, [exchange, reply] { exchange->Reply(reply); });
}

void RestServer::Answer(const std::shared_ptr<HttpExchange>& exchange, const Match& match) {
  const bool probe =
      match.route->operation == Operation::kHealth || match.route->operation == Operation::kReady;
  if (!probe && !backend_.leading()) {
    exchange->Reply(NotLeadingReply(""));
    return;
  }
  auto call = std::make_shared<Call>();
  call->exchange = exchange;
  call->route = match.route;
  if (Changes(exchange->request()) && !exchange->request().origin_allowed) {
    exchange->Reply(Problem(kForbidden, "requests of pages of another site are not allowed"));
    return;
  }
  if (match.route->access != Access::kOpen) {
    Result<Principal> principal = backend_.people->Authenticate(TokenOf(exchange->request()));
    if (!principal.ok()) return Refuse(exchange, principal.status());
    call->principal = std::move(*principal);
  }
  auto checked = CheckRequest(match, exchange->request());
  if (auto* reply = std::get_if<HttpServerReply>(&checked)) {
    // Users without the right learn nothing about arguments.
    call->arguments.path = match.path;
    auto denied = CheckRights(call.get());
    exchange->Reply(std::move(denied ? *denied : *reply));
    return;
  }
  call->arguments = std::get<Arguments>(std::move(checked));
  if (auto reply = CheckRights(call.get())) {
    exchange->Reply(std::move(*reply));
    return;
  }
  if (auto reply = CheckMatch(*call)) {
    exchange->Reply(std::move(*reply));
    return;
  }
  if (call->route->audited == Audited::kRead) {
    const Status written = WriteAudit(*call, kOk);
    if (!written.ok()) {
      exchange->Reply(
          Problem(Unavailable("the audit log cannot be written: " + written.message())));
      return;
    }
  }
  call->answer = [this, call_ = std::weak_ptr<Call>(call)](HttpServerReply reply) {
    if (const CallPtr strong = call_.lock()) Finish(strong, std::move(reply));
  };
  HandlerOf(call->route->operation)(backend_, call);
}

std::optional<HttpServerReply> RestServer::FindJob(Call* call) {
  const std::string id = call->arguments.PathText("id");
  call->target = id;
  Result<controller::JobRecord> job = backend_.store->GetJob(id);
  if (!job.ok() && job.status().code() != Code::kNotFound) return Problem(job.status());
  const Role role = job.ok() ? call->principal.RoleIn(job->team) : Role::kNone;
  if (role == Role::kNone) return Problem(kNotFound, NoJob(id));
  call->team = job->team;
  call->job = std::move(*job);
  if (role < call->route->role) return Problem(kForbidden, RoleSentence(*call, role));
  const bool own = call->job->user == call->principal.user;
  if (call->route->access == Access::kOwnJob && role < Role::kOperator && !own)
    return Problem(kForbidden, "job " + id + " is one of " + call->job->user +
                                   "; the role operator in the team " + call->team +
                                   " may change it");
  return std::nullopt;
}

std::optional<HttpServerReply> RestServer::CheckRights(Call* call) {
  const Route& route = *call->route;
  const Principal& principal = call->principal;
  if (route.scope && route.access != Access::kOpen && !principal.scopes.Has(*route.scope))
    return Problem(kForbidden, "the token lacks the scope " + std::string(NameOf(*route.scope)));
  switch (route.access) {
    case Access::kOpen:
    case Access::kSignedIn:
      return std::nullopt;
    case Access::kJob:
    case Access::kOwnJob:
      return FindJob(call);
    case Access::kAnyTeam:
      if (principal.BestRole() >= route.role) return std::nullopt;
      return Problem(kForbidden, RoleSentence(*call, principal.BestRole()));
    case Access::kServer:
      if (principal.administrator) return std::nullopt;
      return Problem(kForbidden, RoleSentence(*call, principal.BestRole()));
    case Access::kTeam:
      break;
  }
  call->team = call->arguments.PathText("team");
  if (call->team.empty()) call->team = call->arguments.Text("team");
  if (call->team.empty()) call->team = UsualTeam(principal);
  const Role role = principal.RoleIn(call->team);
  if (role == Role::kNone)
    return Problem(kNotFound, "there is no team " + call->team + " that you are in");
  if (role < route.role) return Problem(kForbidden, RoleSentence(*call, role));
  return CheckTeam(*call);
}

// An administrator has its role in every team, also in one that does not exist. The name becomes
// part of paths, so only names of teams go on.
std::optional<HttpServerReply> RestServer::CheckTeam(const Call& call) const {
  if (call.principal.teams.contains(call.team)) return std::nullopt;
  const Status found = backend_.people->GetTeam(call.team).status();
  if (found.ok()) return std::nullopt;
  if (found.code() != Code::kNotFound) return Problem(found);
  return Problem(kNotFound, found.message() + "; GET /api/v1/teams lists them");
}

void RestServer::Finish(const CallPtr& call, HttpServerReply reply) {
  // Its change was refused by the store, since another server leads.
  if (reply.status >= kFirstError && call->route->operation != Operation::kReady &&
      !backend_.leading())
    reply = NotLeadingReply("");
  if (call->route->audited == Audited::kChange) {
    const Status written = WriteAudit(*call, reply.status);
    if (!written.ok()) LogError("the audit log cannot be written: {}", written.message());
  }
  call->exchange->Reply(std::move(reply));
}

Status RestServer::WriteAudit(const Call& call, int status) {
  controller::AuditEntry entry;
  entry.time = backend_.clock->Wall();
  entry.actor = call.principal.user;
  entry.team = call.team;
  entry.action = call.route->name;
  entry.object = call.target;
  entry.detail = call.details;
  entry.detail["status"] = status;
  entry.detail["token"] = call.principal.token_id;
  entry.detail["peer"] = call.request().peer;
  return backend_.audit->Append({&entry, 1});
}

}  // namespace shoal::api
