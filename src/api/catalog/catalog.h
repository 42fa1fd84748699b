// The catalogue of a server: databases and tables over objects, with grants, masks and tags, over
// the store's records.
//
// The REST handlers (catalog_handlers.cc) check who may change what and write the audit log; this
// class checks what must hold for every caller.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "controller/store/records.h"
#include "data/catalog/table.h"

namespace shoal::api {

inline constexpr size_t kMaxLocations = 100;  // of one database

struct Database {
  std::string name;
  std::string team;  // whose operators manage its tables, and whose secrets are their credentials
  // Beginnings of URIs, or directories of the server's machine, that end with '/': all sources of
  // its tables lie below one of them.
  std::vector<std::string> locations;
  std::vector<data::TagPolicy> tags;

  bool operator==(const Database&) const = default;
};

json::object ToJson(const Database& database);
Result<Database> DatabaseFromJson(const json::object& object);

// Thread-safe. Blocks on the store. Concurrent changes of one table are ordered by its version and
// repeated.
class Catalog {
 public:
  // Both must outlive it.
  Catalog(controller::Records* records, const Clock* clock) : records_(records), clock_(clock) {}

  // NotFound says how to make it.
  Result<Database> GetDatabase(const std::string& name);
  Result<std::vector<Database>> Databases();
  // Makes or replaces it, but for its tags.
  Status SetDatabase(const Database& database);
  // FailedPrecondition while it has tables.
  Status RemoveDatabase(const std::string& name);
  // Replaces the policy of the tag; NotFound by Remove.
  Status SetTagPolicy(const std::string& database, const data::TagPolicy& policy);
  Status RemoveTagPolicy(const std::string& database, const std::string& tag);

  // `name`: "DATABASE.TABLE".
  Result<data::Table> GetTable(const std::string& name);
  // Of one database, or of all if empty, by name.
  Result<std::vector<data::Table>> Tables(const std::string& database);
  // AlreadyExists; InvalidArgument for sources out of the database's locations.
  Status CreateTable(const data::Table& table);
  // Reads it, lets `change` change it, checks it and writes it. Returns the table as it is then.
  Result<data::Table> ChangeTable(const std::string& name,
                                  const std::function<Status(data::Table*)>& change);
  Status RemoveTable(const std::string& name);

 private:
  Status ChangeDatabase(const std::string& name, const std::function<Status(Database*)>& change);
  Status CheckSources(const Database& database, const data::Table& table) const;

  controller::Records* const records_;
  const Clock* const clock_;
};

}  // namespace shoal::api
