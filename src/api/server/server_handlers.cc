#include <utility>

#include "api/rest/openapi.h"
#include "api/server/handlers.h"
#include "api/server/readiness.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int kUnavailable = 503;

void AnswerText(const CallPtr& call, int status, const std::string& text) {
  call->answer({status,
                {{"Content-Type", "text/plain; charset=utf-8"}, {"Cache-Control", "no-store"}},
                text + "\n"});
}

}  // namespace

void AnswerHealth(const Backend& /*backend*/, const CallPtr& call) { AnswerText(call, kOk, "ok"); }

void AnswerReady(const Backend& backend, const CallPtr& call) {
  if (backend.stopping && backend.stopping())
    return AnswerText(call, kUnavailable, "the server is ending");
  if (!backend.leading())
    return AnswerText(call, kUnavailable,
                      "the lease has ended, and the store does not answer or another server leads");
  if (const Status stored = backend.readiness->CheckStore(); !stored.ok())
    return AnswerText(call, kUnavailable, "the store cannot be written: " + stored.message());
  // Not 503: running jobs are served, and a balancer must not take the server away from them.
  const Status room = backend.readiness->CheckDisk();
  std::string text = backend.start.epoch == 0 ? "ready" : "ready; leader";
  if (!room.ok()) text += "; no new jobs: " + room.message();
  AnswerText(call, kOk, text);
}

void AnswerOpenApi(const Backend& backend, const CallPtr& call) {
  call->answer(JsonReply(kOk, OpenApiDocument(backend.start.version)));
}

void AnswerServerInfo(const Backend& backend, const CallPtr& call) {
  call->answer(JsonReply(kOk, json::object{{"version", backend.start.version},
                                           {"default_engine", backend.default_engine}}));
}

void AnswerMe(const Backend& /*backend*/, const CallPtr& call) {
  const Principal& principal = call->principal;
  json::object teams;
  for (const auto& [team, role] : principal.teams) teams[team] = NameOf(role);
  json::array scopes;
  for (const std::string& name : principal.scopes.names()) scopes.emplace_back(name);
  call->answer(JsonReply(kOk, json::object{{"user", principal.user},
                                           {"administrator", principal.administrator},
                                           {"teams", std::move(teams)},
                                           {"scopes", std::move(scopes)},
                                           {"token", principal.token_id}}));
}

void ListEngines(const Backend& backend, const CallPtr& call) {
  json::array items;
  for (const std::string& name : backend.engines->names())
    items.push_back({{"name", name}, {"kind", backend.engines->KindOf(name)}});
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)}}));
}

void ListAudit(const Backend& backend, const CallPtr& call) {
  const Arguments& arguments = call->arguments;
  controller::AuditFilter filter;
  filter.actor = arguments.Text("user");
  filter.team = arguments.Text("team");
  filter.action = arguments.Text("action");
  filter.object = arguments.Text("object");
  filter.since = WallOf(arguments.Integer("since", 0));
  filter.until = WallOf(arguments.Integer("until", 0));
  const auto page = backend.audit->Read(filter, arguments.Text("after"),
                                        static_cast<int>(arguments.Integer("limit", kDefaultPage)));
  if (!page.ok()) return call->answer(QueryProblem(page.status()));
  json::array items;
  for (const controller::AuditEntry& entry : page->entries) {
    items.push_back({{"seq", entry.seq},
                     {"time", FormatWall(entry.time)},
                     {"user", entry.actor},
                     {"team", entry.team},
                     {"action", entry.action},
                     {"object", entry.object},
                     {"detail", entry.detail}});
  }
  json::object object{{"items", std::move(items)}};
  if (!page->next.empty()) object["next"] = page->next;
  call->answer(JsonReply(kOk, object));
}

}  // namespace shoal::api
