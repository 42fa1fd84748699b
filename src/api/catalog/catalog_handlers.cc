// The requests about databases, tables and grants.

#include <algorithm>
#include <optional>
#include <utility>

#include "api/catalog/catalog.h"
#include "api/catalog/gates.h"
#include "api/catalog/table_access.h"
#include "api/server/handlers.h"
#include "base/id.h"
#include "base/utf8.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int kCreated = 201;
constexpr int kNoContent = 204;
constexpr size_t kGrantBytes = 4;
constexpr int kPage = 200;

void Done(const CallPtr& call, const Status& done) {
  if (!done.ok()) return call->answer(Problem(done));
  call->answer({kNoContent, {}, ""});
}

struct Found {
  Database database;
  data::Table table;
};

Status NotVisible(const std::string& name) {
  return NotFound("there is no table " + EscapedUtf8(name.substr(0, 130)) +
                  " in the catalogue; `shoal catalog ls` lists those that you may see");
}

// The table of the path, as far as the user may know of it.
Result<Found> FindTable(const Backend& backend, Call* call) {
  const std::string name = call->arguments.PathText("table");
  call->target = name;
  Found found;
  TRY_ASSIGN(found.table, backend.tables.catalog->GetTable(name));
  TRY_ASSIGN(found.database, backend.tables.catalog->GetDatabase(found.table.database));
  if (!MaySee(call->principal, found.database, found.table)) return NotVisible(name);
  call->team = found.database.team;
  return found;
}

Result<Found> FindManaged(const Backend& backend, Call* call) {
  TRY_ASSIGN(Found found, FindTable(backend, call));
  if (MayManage(call->principal, found.database, found.table)) return found;
  return PermissionDenied("table " + found.table.full_name() + " is managed by its owner " +
                          found.table.owner + ", operators of the team " + found.database.team +
                          " and administrators");
}

Result<Database> FindManagedDatabase(const Backend& backend, Call* call, const std::string& name) {
  TRY_ASSIGN(Database database, backend.tables.catalog->GetDatabase(name));
  call->team = database.team;
  if (call->principal.RoleIn(database.team) >= Role::kOperator) return database;
  return PermissionDenied("database " + name + " is managed by operators of the team " +
                          database.team + " and administrators");
}

json::object ShownTable(const data::Table& table, bool managed) {
  json::object object = data::ToJson(table);
  if (managed) return object;
  for (const char* field : {"sources", "credentials", "grants", "masks"}) object.erase(field);
  return object;
}

json::object AccessJson(const std::string& user, const data::Table& table,
                        const Result<data::Access>& access) {
  json::object object{{"user", user}};
  if (!access.ok()) {
    object["refusal"] = access.status().message();
    return object;
  }
  json::array columns;
  for (size_t i = 0; i < access->columns.size(); ++i)
    columns.push_back(json::object{{"name", table.columns[access->columns[i]].name},
                                   {"mask", data::TextOf(access->masks[i])}});
  object["columns"] = std::move(columns);
  object["rows"] = access->rows;
  object["restricted"] = access->restricted;
  if (access->until) object["until"] = FormatWall(*access->until);
  return object;
}

std::set<std::string> SetOf(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// The people whom the request asks about.
Result<std::vector<data::Asker>> AskersOf(const Backend& backend, const Call& call, bool managed) {
  const std::string user = call.arguments.Text("user");
  if (user.empty() || user == call.principal.user)
    return std::vector<data::Asker>{AskerOf(call.principal)};
  if (!managed)
    return PermissionDenied("what others may read is told to those who manage the table");
  std::vector<data::Asker> askers;
  if (user != "*") {
    TRY_ASSIGN(askers.emplace_back(), AskerOf(backend.people, user));
    return askers;
  }
  std::string after;
  do {
    TRY_ASSIGN(const PageOf<User> page, backend.people->ListUsers(after, kPage));
    for (const User& one : page.items) {
      if (one.disabled) continue;
      data::Asker& asker = askers.emplace_back();
      asker.user = one.name;
      for (const auto& [team, role] : one.teams)
        if (role >= Role::kViewer) asker.teams.insert(team);
    }
    after = page.next;
  } while (!after.empty());
  return askers;
}

Result<data::Table> MakeTable(const Backend& backend, Call* call) {
  const std::string name = call->arguments.PathText("table");
  call->target = name;
  const size_t dot = name.find('.');
  if (dot == std::string::npos)
    return InvalidArgument("name: got " + EscapedUtf8(name.substr(0, 130)) +
                           ", expected DATABASE.TABLE");
  data::Table table;
  table.database = name.substr(0, dot);
  table.name = name.substr(dot + 1);
  TRY_ASSIGN(const Database database, FindManagedDatabase(backend, call, table.database));
  table.owner = call->arguments.Text("owner");
  if (table.owner.empty()) table.owner = call->principal.user;
  TRY(backend.people->GetUser(table.owner).status().With("owner"));
  table.sources = call->arguments.Texts("sources");
  TRY_ASSIGN(table.format, data::ParseRecordFormat(call->arguments.Text("format")));
  if (const json::value* const columns = call->arguments.body.if_contains("columns");
      columns != nullptr) {
    TRY_ASSIGN(table.columns, data::ColumnsFromJson(*columns));
  }
  table.credentials = call->arguments.Text("credentials");
  if (!table.credentials.empty())
    TRY(backend.secrets->Read(database.team, table.credentials).status().With("credentials"));
  call->details = {{"owner", table.owner}, {"format", NameOf(table.format)}};
  TRY(backend.tables.catalog->CreateTable(table));
  return table;
}

Result<data::Grant> MakeGrant(const Backend& backend, Call* call) {
  TRY(FindManaged(backend, call).status());
  data::Grant grant;
  grant.id = RandomHex(kGrantBytes);
  grant.principal = call->arguments.Text("to");
  grant.columns = call->arguments.Texts("columns");
  grant.rows = call->arguments.Text("rows");
  if (const json::value* const masks = call->arguments.body.if_contains("masks");
      masks != nullptr && masks->is_object()) {
    for (const auto& [column, mask] : masks->get_object()) {
      TRY_ASSIGN(grant.masks[std::string(column)],
                 data::ParseMask(mask.is_string() ? std::string_view(mask.get_string()) : ""));
    }
  }
  grant.by = call->principal.user;
  grant.made = backend.clock->Wall();
  const int64_t seconds = call->arguments.Integer("seconds", 0);
  if (seconds > 0) grant.expires = grant.made + std::chrono::seconds(seconds);
  call->details = data::ToJson(grant);
  TRY(backend.tables.catalog
          ->ChangeTable(call->target,
                        [&](data::Table* table) -> Status {
                          table->grants.push_back(grant);
                          return Status::Ok();
                        })
          .status());
  return grant;
}

Status ChangeColumn(const Backend& backend, Call* call) {
  TRY(FindManaged(backend, call).status());
  const std::string column = call->arguments.PathText("column");
  const bool tags = call->arguments.Has("tags");
  const std::string mask_text = call->arguments.Text("mask");
  if (!tags && mask_text.empty()) return InvalidArgument("tags: expected tags or a mask");
  data::Mask mask;
  if (!mask_text.empty()) {
    TRY_ASSIGN(mask, data::ParseMask(mask_text));
  }
  call->details = {{"column", column}, {"mask", mask_text}};
  return backend.tables.catalog
      ->ChangeTable(call->target,
                    [&](data::Table* table) -> Status {
                      if (!table->Find(column))
                        return NotFound("table " + table->full_name() + " has no column " +
                                        EscapedUtf8(column));
                      if (tags) table->tags[column] = SetOf(call->arguments.Texts("tags"));
                      if (tags && table->tags[column].empty()) table->tags.erase(column);
                      if (mask_text.empty()) return Status::Ok();
                      if (mask == data::Mask()) {
                        table->masks.erase(column);
                      } else {
                        table->masks[column] = {mask, SetOf(call->arguments.Texts("except"))};
                      }
                      return Status::Ok();
                    })
      .status();
}

// Lets the gates of running jobs obey a change that was made.
Status AfterChange(const Backend& backend, const Call& call, const Status& done) {
  if (done.ok()) backend.tables.gates->OnTableChange(call.target);
  return done;
}

}  // namespace

void ListDatabases(const Backend& backend, const CallPtr& call) {
  const auto databases = backend.tables.catalog->Databases();
  if (!databases.ok()) return call->answer(Problem(databases.status()));
  json::array items;
  for (const Database& database : *databases) {
    json::object object = ToJson(database);
    if (call->principal.RoleIn(database.team) < Role::kViewer)
      for (const char* field : {"locations", "tags"}) object.erase(field);
    items.push_back(std::move(object));
  }
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)}}));
}

void SetDatabase(const Backend& backend, const CallPtr& call) {
  Database database;
  database.name = call->arguments.PathText("database");
  database.team = call->arguments.Text("team");
  database.locations = call->arguments.Texts("locations");
  call->target = database.name;
  call->team = database.team;
  call->details = ToJson(database);
  const Status team = backend.people->GetTeam(database.team).status().With("team");
  Done(call, team.ok() ? AfterChange(backend, *call, backend.tables.catalog->SetDatabase(database))
                       : team);
}

void RemoveDatabase(const Backend& backend, const CallPtr& call) {
  call->target = call->arguments.PathText("database");
  Done(call, backend.tables.catalog->RemoveDatabase(call->target));
}

void SetTagPolicy(const Backend& backend, const CallPtr& call) {
  call->target = call->arguments.PathText("database");
  const auto managed = FindManagedDatabase(backend, call.get(), call->target);
  if (!managed.ok()) return call->answer(Problem(managed.status()));
  json::array except;
  for (const std::string& one : call->arguments.Texts("except")) except.emplace_back(one);
  call->details = {{"tag", call->arguments.PathText("tag")},
                   {"action", call->arguments.Text("action")},
                   {"except", std::move(except)}};
  const auto policy = data::TagPolicyFromJson(call->details);
  Done(call, policy.ok() ? AfterChange(backend, *call,
                                       backend.tables.catalog->SetTagPolicy(call->target, *policy))
                         : policy.status());
}

void RemoveTagPolicy(const Backend& backend, const CallPtr& call) {
  call->target = call->arguments.PathText("database");
  const auto managed = FindManagedDatabase(backend, call.get(), call->target);
  if (!managed.ok()) return call->answer(Problem(managed.status()));
  const std::string tag = call->arguments.PathText("tag");
  call->details = {{"tag", tag}};
  Done(call,
       AfterChange(backend, *call, backend.tables.catalog->RemoveTagPolicy(call->target, tag)));
}

void ListTables(const Backend& backend, const CallPtr& call) {
  const std::string only = call->arguments.Text("database");
  const auto tables = backend.tables.catalog->Tables(only);
  const auto databases = backend.tables.catalog->Databases();
  if (!tables.ok()) return call->answer(Problem(tables.status()));
  if (!databases.ok()) return call->answer(Problem(databases.status()));
  json::array items;
  for (const data::Table& table : *tables) {
    const auto database = std::ranges::find(*databases, table.database, &Database::name);
    if (database == databases->end() || !MaySee(call->principal, *database, table)) continue;
    items.push_back(ShownTable(table, MayManage(call->principal, *database, table)));
  }
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)}}));
}

void GetTable(const Backend& backend, const CallPtr& call) {
  const auto found = FindTable(backend, call.get());
  if (!found.ok()) return call->answer(Problem(found.status()));
  const bool managed = MayManage(call->principal, found->database, found->table);
  call->answer(JsonReply(kOk, ShownTable(found->table, managed)));
}

void CreateTable(const Backend& backend, const CallPtr& call) {
  const auto table = MakeTable(backend, call.get());
  if (!table.ok()) return call->answer(Problem(table.status()));
  call->answer(JsonReply(kOk, data::ToJson(*table)));
}

void RemoveTable(const Backend& backend, const CallPtr& call) {
  const auto found = FindManaged(backend, call.get());
  Done(call, found.ok()
                 ? AfterChange(backend, *call, backend.tables.catalog->RemoveTable(call->target))
                 : found.status());
}

void CreateGrant(const Backend& backend, const CallPtr& call) {
  const auto grant = MakeGrant(backend, call.get());
  if (!grant.ok()) return call->answer(Problem(grant.status()));
  backend.tables.gates->OnTableChange(call->target);
  call->answer(JsonReply(kCreated, data::ToJson(*grant)));
}

void RevokeGrant(const Backend& backend, const CallPtr& call) {
  const auto found = FindManaged(backend, call.get());
  if (!found.ok()) return call->answer(Problem(found.status()));
  const std::string id = call->arguments.PathText("grant");
  call->details = {{"grant", id}};
  const Status done =
      backend.tables.catalog
          ->ChangeTable(
              call->target,
              [&](data::Table* table) -> Status {
                if (std::erase_if(table->grants, [&](const auto& one) { return one.id == id; }) > 0)
                  return Status::Ok();
                return NotFound("table " + table->full_name() + " has no grant " + EscapedUtf8(id) +
                                "; `shoal catalog show " + table->full_name() + "` lists them");
              })
          .status();
  Done(call, AfterChange(backend, *call, done));
}

void SetColumn(const Backend& backend, const CallPtr& call) {
  const Status done = ChangeColumn(backend, call.get());
  Done(call, AfterChange(backend, *call, done));
}

void AnswerTableAccess(const Backend& backend, const CallPtr& call) {
  const auto found = FindTable(backend, call.get());
  if (!found.ok()) return call->answer(Problem(found.status()));
  const bool managed = MayManage(call->principal, found->database, found->table);
  const auto askers = AskersOf(backend, *call, managed);
  if (!askers.ok()) return call->answer(Problem(askers.status()));
  std::vector<std::string> wanted;
  if (const std::string column = call->arguments.Text("column"); !column.empty())
    wanted.push_back(column);
  json::array items;
  for (const data::Asker& asker : *askers) {
    const auto access = data::EffectiveAccess(found->table, found->database.tags, asker, wanted,
                                              backend.clock->Wall());
    if (access.status().code() == Code::kInvalidArgument)
      return call->answer(QueryProblem(access.status()));
    // Of all users, those who may read something.
    if (!access.ok() && askers->size() > 1) continue;
    items.push_back(AccessJson(asker.user, found->table, access));
  }
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)}}));
}

}  // namespace shoal::api
