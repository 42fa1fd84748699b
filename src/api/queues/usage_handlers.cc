// What jobs have held, by team, user, queue, engine and month.

#include <utility>

#include "api/people/identity.h"
#include "api/server/handlers.h"
#include "controller/usage/usage.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;

// The teams whose jobs the user may see, as ListJobs selects; none: false.
bool SelectTeams(const CallPtr& call, controller::UsageQuery* query) {
  const Principal& principal = call->principal;
  const std::string team = call->arguments.Text("team");
  if (!team.empty()) {
    query->teams = {team};
    return principal.administrator || principal.RoleIn(team) != Role::kNone;
  }
  if (principal.administrator) return true;
  for (const auto& [name, role] : principal.teams) query->teams.push_back(name);
  return !query->teams.empty();
}

Result<controller::UsageQuery> QueryOf(const Arguments& arguments, WallTime now) {
  controller::UsageQuery query{controller::MonthOf(now), controller::MonthOf(now)};
  if (arguments.Has("to")) {
    TRY_ASSIGN(query.last, controller::ParseMonth(arguments.Text("to")));
    query.first = query.last;
  }
  if (arguments.Has("from")) {
    TRY_ASSIGN(query.first, controller::ParseMonth(arguments.Text("from")));
  }
  TRY(controller::CheckUsageQuery(query));
  return query;
}

}  // namespace

void ReadUsage(const Backend& backend, const CallPtr& call) {
  const WallTime now = backend.clock->Wall();
  Result<controller::UsageQuery> query = QueryOf(call->arguments, now);
  if (!query.ok()) return call->answer(Problem(query.status()));
  json::array items;
  if (SelectTeams(call, &*query)) {
    const auto table = controller::ReadUsage(backend.store, *query, now);
    if (!table.ok()) return call->answer(Problem(table.status()));
    for (const auto& [key, totals] : *table) items.push_back(controller::ToJson(key, totals));
  }
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)}}));
}

}  // namespace shoal::api
