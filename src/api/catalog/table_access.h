// What the users of a server may do with a table, and the tables among the data of their jobs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/catalog/catalog.h"
#include "api/people/people.h"
#include "api/people/principal.h"
#include "base/clock.h"
#include "base/status.h"
#include "data/catalog/access.h"
#include "job/spec/job.h"
#include "job/text/field_locations.h"

namespace shoal::api {

data::Asker AskerOf(const Principal& principal);
// NotFound; PermissionDenied for a user who is disabled.
Result<data::Asker> AskerOf(People* people, const std::string& user);

// Its owner, operators of the database's team, administrators.
bool MayManage(const Principal& principal, const Database& database, const data::Table& table);
// Also people of the team, and those who have a grant.
bool MaySee(const Principal& principal, const Database& database, const data::Table& table);

// One data set of a job that is a table, as its user may read it.
struct ResolvedTable {
  std::string data;
  Database database;
  data::Table table;
  data::Access access;
  // The gate is needed: something is hidden, the sources have credentials, or the job's programs
  // cannot read sources themselves.
  bool gated = false;
};

// All tables among the data of the job; empty: none. PermissionDenied names the column and the
// missing grant, InvalidArgument what does not exist, with the location in the job file.
Result<std::vector<ResolvedTable>> ResolveTables(Catalog* catalog, const data::Asker& asker,
                                                 const job::Job& job,
                                                 const job::FieldLocations* locations,
                                                 WallTime now);

// Puts the sources and formats of the tables into the job: those of the table, or of the gate.
void SetSources(const std::vector<ResolvedTable>& tables, job::Job* job);

}  // namespace shoal::api
