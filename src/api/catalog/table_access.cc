#include "api/catalog/table_access.h"

#include <algorithm>
#include <utility>

#include "api/server/prepare_job.h"
#include "data/gate/table_filter.h"

namespace shoal::api {
namespace {

Status At(const job::FieldLocations* locations, const std::string& field, const Status& status) {
  const std::string place = locations == nullptr ? "" : locations->Prefix(kJobFileName, field);
  // The answer is about a field of the job, which exists.
  const Code code = status.code() == Code::kNotFound ? Code::kInvalidArgument : status.code();
  return Status(code, place + field + ": " + status.message());
}

Result<ResolvedTable> Resolve(Catalog* catalog, const data::Asker& asker, const job::Job& job,
                              const job::DataSource& source, WallTime now) {
  ResolvedTable resolved;
  resolved.data = source.name;
  TRY_ASSIGN(resolved.table, catalog->GetTable(source.table));
  TRY_ASSIGN(resolved.database, catalog->GetDatabase(resolved.table.database));
  TRY_ASSIGN(resolved.access, data::EffectiveAccess(resolved.table, resolved.database.tags, asker,
                                                    source.columns, now));
  resolved.gated = resolved.access.restricted || !resolved.table.credentials.empty() ||
                   job.framework != job::Framework::kShoal;
  return resolved;
}

}  // namespace

data::Asker AskerOf(const Principal& principal) {
  data::Asker asker{principal.user, {}};
  for (const auto& [team, role] : principal.teams)
    if (role >= Role::kViewer) asker.teams.insert(team);
  return asker;
}

Result<data::Asker> AskerOf(People* people, const std::string& user) {
  TRY_ASSIGN(const User found, people->GetUser(user));
  if (found.disabled) return PermissionDenied("the user " + user + " is disabled");
  data::Asker asker{user, {}};
  for (const auto& [team, role] : found.teams)
    if (role >= Role::kViewer) asker.teams.insert(team);
  return asker;
}

bool MayManage(const Principal& principal, const Database& database, const data::Table& table) {
  return principal.user == table.owner || principal.RoleIn(database.team) >= Role::kOperator;
}

bool MaySee(const Principal& principal, const Database& database, const data::Table& table) {
  if (MayManage(principal, database, table) || principal.RoleIn(database.team) >= Role::kViewer)
    return true;
  const data::Asker asker = AskerOf(principal);
  return std::ranges::any_of(table.grants, [&](const data::Grant& grant) {
    return data::IsMeant(grant.principal, asker);
  });
}

Result<std::vector<ResolvedTable>> ResolveTables(Catalog* catalog, const data::Asker& asker,
                                                 const job::Job& job,
                                                 const job::FieldLocations* locations,
                                                 WallTime now) {
  std::vector<ResolvedTable> tables;
  for (const job::DataSource& source : job.data) {
    if (source.table.empty()) continue;
    auto resolved = Resolve(catalog, asker, job, source, now);
    const std::string field =
        "data." + source.name + (source.columns.empty() ? ".table" : ".columns");
    if (!resolved.ok()) return At(locations, field, resolved.status());
    tables.push_back(std::move(*resolved));
  }
  return tables;
}

void SetSources(const std::vector<ResolvedTable>& tables, job::Job* job) {
  for (const ResolvedTable& resolved : tables) {
    const auto source = std::ranges::find(job->data, resolved.data, &job::DataSource::name);
    if (source == job->data.end()) continue;
    source->sources = resolved.gated ? std::vector<std::string>{"gate://" + resolved.data + "/*"}
                                     : resolved.table.sources;
    const data::RecordFormat format = resolved.table.format;
    source->format = NameOf(resolved.access.restricted ? data::FilteredFormat(format) : format);
  }
}

}  // namespace shoal::api
