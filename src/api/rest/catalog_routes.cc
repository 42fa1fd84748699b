#include "api/rest/catalog_routes.h"

#include <utility>

namespace shoal::api {
namespace {

constexpr size_t kGrantBody = size_t{1} << 20;
constexpr size_t kTableBody = size_t{4} << 20;
constexpr int64_t kMaxListed = 10'000;
constexpr int64_t kMaxCondition = 4096;
constexpr int64_t kMaxPrincipals = 100;
constexpr int64_t kMaxGrantSeconds = int64_t{10} * 365 * 86400;

// Who may do it to which table is a rule of the handler: its owner, operators of the database's
// team, administrators.
Route Read(Route route) {
  route.access = Access::kAnyTeam;
  route.role = Role::kViewer;
  route.scope = Scope::kJobsRead;
  return route;
}

Route Change(Route route) {
  route.access = Access::kAnyTeam;
  route.role = Role::kViewer;
  route.scope = Scope::kPeopleWrite;
  route.audited = Audited::kChange;
  if (route.method == Method::kDelete || route.schema.empty()) {
    route.status = 204;
    route.reply = Reply::kNothing;
  }
  if (route.method != Method::kDelete) {
    route.body = Body::kJson;
    route.max_body = route.max_body == 0 ? kGrantBody : route.max_body;
  }
  return route;
}

Route ByAdministrator(Route route) {
  route = Change(std::move(route));
  route.access = Access::kServer;
  route.role = Role::kAdministrator;
  return route;
}

// clang-format off
std::vector<Route> DatabaseRoutes() {
  return {
      Read({.operation = Operation::kListDatabases, .path = "/api/v1/catalog/databases",
            .name = "listDatabases", .doc = "The databases of the catalogue (docs/catalog.md)",
            .schema = "Databases"}),
      ByAdministrator(
          {.operation = Operation::kSetDatabase, .method = Method::kPut,
           .path = "/api/v1/catalog/databases/{database}", .name = "setDatabase",
           .doc = "Makes a database, or changes its team and locations",
           .fields = {{.name = "team", .required = true, .least = 1, .most = 64,
                       .doc = "Whose operators manage its tables"},
                      {.name = "locations", .kind = Kind::kTexts, .required = true, .most = 100,
                       .doc = "Below which the sources of its tables lie; each ends with `/`"}}}),
      ByAdministrator({.operation = Operation::kRemoveDatabase, .method = Method::kDelete,
                       .path = "/api/v1/catalog/databases/{database}", .name = "removeDatabase",
                       .doc = "Removes a database without tables"}),
      Change({.operation = Operation::kSetTagPolicy, .method = Method::kPut,
              .path = "/api/v1/catalog/databases/{database}/tags/{tag}", .name = "setTagPolicy",
              .doc = "What holds for all columns of the database with the tag; for operators of its "
                     "team",
              .fields = {{.name = "action", .required = true, .least = 1, .most = 32,
                          .doc = "`deny`, or a mask: null, hash, redact, truncate:N"},
                         {.name = "except", .kind = Kind::kTexts, .most = kMaxPrincipals,
                          .doc = "For whom it does not hold: user:NAME, team:NAME [only the owner]"}}}),
      Change({.operation = Operation::kRemoveTagPolicy, .method = Method::kDelete,
              .path = "/api/v1/catalog/databases/{database}/tags/{tag}",
              .name = "removeTagPolicy", .doc = "Removes the policy of a tag"}),
  };
}

std::vector<Route> TableRoutes() {
  return {
      Read({.operation = Operation::kListTables, .path = "/api/v1/catalog/tables",
            .name = "listTables", .doc = "The tables that the user may see, or has a grant of",
            .query = {{.name = "database", .least = 1, .most = 64, .doc = "Only of this database"}},
            .schema = "Tables"}),
      Read({.operation = Operation::kGetTable, .path = "/api/v1/catalog/tables/{table}",
            .name = "getTable",
            .doc = "A table, DATABASE.TABLE; with sources and grants for those who manage it",
            .schema = "Table"}),
      Change({.operation = Operation::kCreateTable, .method = Method::kPut,
              .path = "/api/v1/catalog/tables/{table}", .name = "createTable",
              .doc = "Makes a table; for operators of the database's team",
              .fields = {{.name = "sources", .kind = Kind::kTexts, .required = true, .most = 1000,
                          .doc = "URIs or absolute paths, also patterns"},
                         {.name = "format", .required = true, .least = 1, .most = 32,
                          .doc = "As of `shoal data`"},
                         {.name = "columns", .kind = Kind::kObjects, .most = kMaxListed,
                          .doc = "`{name, type}` in order; of csv, tsv and jsonl"},
                         {.name = "owner", .least = 1, .most = 64,
                          .doc = "The user who may read all of it [the caller]"},
                         {.name = "credentials", .least = 1, .most = 63,
                          .doc = "A secret of the database's team with variables of stores [none]"}},
              .max_body = kTableBody, .schema = "Table"}),
      Change({.operation = Operation::kRemoveTable, .method = Method::kDelete,
              .path = "/api/v1/catalog/tables/{table}", .name = "removeTable",
              .doc = "Removes a table with its grants; its objects stay"}),
  };
}

std::vector<Route> GrantRoutes() {
  return {
      Change({.operation = Operation::kCreateGrant, .method = Method::kPost,
              .path = "/api/v1/catalog/tables/{table}/grants", .name = "createGrant",
              .doc = "Lets a person or team read columns and rows of the table",
              .fields = {{.name = "to", .required = true, .least = 1, .most = 80,
                          .doc = "user:NAME, team:NAME or everyone"},
                         {.name = "columns", .kind = Kind::kTexts, .most = kMaxListed, .doc = "[all]"},
                         {.name = "rows", .least = 1, .most = kMaxCondition,
                          .doc = "A condition, such as `country = 'DE'` [all]"},
                         {.name = "masks", .kind = Kind::kObject, .doc = "By column: a mask [none]"},
                         {.name = "seconds", .kind = Kind::kInteger, .least = 1,
                          .most = kMaxGrantSeconds, .doc = "Until it expires [never]"}},
              .status = 201, .schema = "Grant"}),
      Change({.operation = Operation::kRevokeGrant, .method = Method::kDelete,
              .path = "/api/v1/catalog/tables/{table}/grants/{grant}", .name = "revokeGrant",
              .doc = "Revokes a grant; gates of running jobs obey it at once"}),
      Change({.operation = Operation::kSetColumn, .method = Method::kPut,
              .path = "/api/v1/catalog/tables/{table}/columns/{column}", .name = "setColumn",
              .doc = "Sets the tags or the mask of a column; what is not given stays",
              .fields = {{.name = "tags", .kind = Kind::kTexts, .most = 20, .doc = "All tags"},
                         {.name = "mask", .least = 1, .most = 32,
                          .doc = "null, hash, redact, truncate:N, or none"},
                         {.name = "except", .kind = Kind::kTexts, .most = kMaxPrincipals,
                          .doc = "Who sees it without the mask [only the owner]"}}}),
      Read({.operation = Operation::kTableAccess,
            .path = "/api/v1/catalog/tables/{table}/access", .name = "tableAccess",
            .doc = "What the user may read of the table, or others, for those who manage it",
            .query = {{.name = "user", .least = 1, .most = 64,
                       .doc = "Of this user [the caller; `*`: all users]"},
                      {.name = "column", .least = 1, .most = 1024, .doc = "Only this column"}},
            .schema = "TableAccess"}),
      Read({.operation = Operation::kListLineage, .path = "/api/v1/lineage", .name = "listLineage",
            .doc = "Which jobs have trained on what; of the user's teams and of tables that the user "
                   "manages",
            .query = {{.name = "job", .least = 1, .most = 128, .doc = "Only this job"},
                      {.name = "model", .least = 1, .most = 4096, .doc = "Only of this output"},
                      {.name = "column", .least = 1, .most = 1024,
                       .doc = "Only on this column or table: DATABASE.TABLE[.COLUMN]"}},
            .schema = "LineageRecords"}),
  };
}
// clang-format on

}  // namespace

std::vector<Route> CatalogRoutes() {
  std::vector<Route> all = DatabaseRoutes();
  for (const std::vector<Route>& part : {TableRoutes(), GrantRoutes()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace shoal::api
