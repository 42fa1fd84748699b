#include "api/rest/sql_routes.h"

#include <string>
#include <utility>

namespace shoal::api {
namespace {

constexpr int64_t kMaxText = int64_t{1} << 20;
constexpr size_t kTextBody = size_t{7} << 20;  // as JSON with escapes
constexpr size_t kSmallBody = size_t{64} << 10;
constexpr int64_t kMaxRows = 100'000;

Parameter Text(std::string_view name, std::string_view doc, int64_t most) {
  return {.name = name, .required = true, .most = most, .doc = doc};
}
Parameter Cursor() {
  return {.name = "cursor",
          .kind = Kind::kInteger,
          .required = true,
          .most = kMaxText,
          .doc = "A byte of it"};
}

// Of members, for sessions of their own.
Route Change(Route route) {
  route.access = Access::kTeam;
  route.role = Role::kMember;
  route.scope = Scope::kJobsWrite;
  route.audited = Audited::kChange;
  return route;
}

Route Read(Route route) {
  route.access = Access::kTeam;
  route.role = Role::kMember;
  route.scope = Scope::kJobsRead;
  return route;
}

Route Post(Route route, std::vector<Parameter> fields, size_t most) {
  route.method = Method::kPost;
  route.body = Body::kJson;
  route.fields = std::move(fields);
  route.max_body = most;
  return route;
}

}  // namespace

// clang-format off
std::vector<Route> SqlRoutes() {
  return {
      Read({.operation = Operation::kListSqlSessions, .path = "/api/v1/teams/{team}/sql",
            .name = "listSqlSessions",
            .doc = "The user's SQL sessions in the team (docs/sql.md); of all users for administrators",
            .schema = "SqlSessions"}),
      Change(Post({.operation = Operation::kCreateSqlSession, .path = "/api/v1/teams/{team}/sql",
                   .name = "createSqlSession",
                   .doc = "Begins a session: tables and variables that statements share. It ends after 30 "
                          "minutes without statements",
                   .status = 201, .schema = "SqlSession"},
                  {}, kSmallBody)),
      Read({.operation = Operation::kGetSqlSession, .path = "/api/v1/teams/{team}/sql/{id}",
            .name = "getSqlSession", .doc = "One session", .schema = "SqlSession"}),
      Change({.operation = Operation::kEndSqlSession, .method = Method::kDelete,
              .path = "/api/v1/teams/{team}/sql/{id}", .name = "endSqlSession",
              .doc = "Ends a session, what it runs, and the job that it waits for",
              .status = 204, .reply = Reply::kNothing}),
      Change(Post({.operation = Operation::kRunSql, .path = "/api/v1/teams/{team}/sql/{id}/statements",
                   .name = "runSql",
                   .doc = "Begins statements, one request at a time; 409 while others run. Their results and "
                          "progress are events. A `train` is a job of the user",
                   .status = 202, .schema = "SqlStatement"},
                  {Text("text", "The statements", kMaxText),
                   {.name = "rows", .kind = Kind::kInteger, .most = kMaxRows,
                    .doc = "At most this many rows of a result [1000]"}},
                  kTextBody)),
      Change(Post({.operation = Operation::kCancelSql, .path = "/api/v1/teams/{team}/sql/{id}/cancel",
                   .name = "cancelSql",
                   .doc = "Stops the statements that run. Their job may save; a second request kills it",
                   .status = 202, .schema = "SqlSession"},
                  {}, kSmallBody)),
      Read(Post({.operation = Operation::kCompleteSql, .path = "/api/v1/teams/{team}/sql/{id}/complete",
                 .name = "completeSql", .doc = "What may stand at a place of a text",
                 .schema = "SqlCompletion"},
                {Text("text", "The statements", kMaxText), Cursor()}, kTextBody)),
      Read(Post({.operation = Operation::kInspectSql, .path = "/api/v1/teams/{team}/sql/{id}/inspect",
                 .name = "inspectSql", .doc = "Lines about the name at a place of a text",
                 .schema = "SqlInspection"},
                {Text("text", "The statements", kMaxText), Cursor()}, kTextBody)),
      {.operation = Operation::kReadSqlEvents, .path = "/api/v1/teams/{team}/sql/{id}/events",
       .name = "readSqlEvents",
       .doc = "Results, notes and progress: a page, or with `Accept: text/event-stream` a stream that goes "
              "on until the session has ended",
       .access = Access::kTeam, .role = Role::kMember, .scope = Scope::kDataRead,
       .audited = Audited::kRead,
       .query = {{.name = "after", .least = 1, .most = 20, .doc = "Only events after this position"},
                 {.name = "limit", .kind = Kind::kInteger, .least = 1, .most = kMaxPage,
                  .doc = "Events of a page [100]"}},
       .schema = "SqlEvents"},
  };
}
// clang-format on

}  // namespace shoal::api
