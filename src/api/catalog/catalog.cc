#include "api/catalog/catalog.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/utf8.h"
#include "data/objects/object_uri.h"

namespace shoal::api {
namespace {

constexpr const char* kDatabaseKind = "catalog.database";
constexpr const char* kTableKind = "catalog.table";
constexpr int kPage = 200;
constexpr int kAttempts = 10;
constexpr size_t kMaxLocation = 4096;

Status NoTable(const std::string& name) {
  return NotFound("there is no table " + EscapedUtf8(name.substr(0, 130)) +
                  " in the catalogue; `shoal catalog ls` lists those that you may see");
}

Status NoDatabase(const std::string& name) {
  return NotFound("there is no database " + EscapedUtf8(name.substr(0, 80)) +
                  "; an administrator makes it with `shoal catalog create database`");
}

bool HasParent(const std::string& path) {
  for (const auto& part : std::filesystem::path(path))
    if (part == "..") return true;
  return false;
}

Status CheckLocations(const Database& database) {
  if (database.locations.empty() || database.locations.size() > kMaxLocations)
    return InvalidArgument("locations: got " + std::to_string(database.locations.size()) +
                           ", expected 1 to " + std::to_string(kMaxLocations));
  for (const std::string& location : database.locations) {
    const bool local = location.starts_with('/');
    const size_t place = location.find("://");
    // A host or bucket has to be whole: s3://bucket would be the beginning of s3://bucket-2/.
    const bool whole =
        place != std::string::npos && location.find('/', place + 3) != std::string::npos;
    if (location.size() > kMaxLocation || !location.ends_with('/') || !(local || whole) ||
        location.starts_with("file:") || HasParent(location))
      return InvalidArgument("locations: got " + EscapedUtf8(location.substr(0, 200)) +
                             ", expected the beginning of URIs or an absolute directory that ends "
                             "with '/', such as s3://bucket/clicks/ or /data/clicks/");
    TRY(data::ParseObjectUri(location).status().With("locations"));
  }
  return Status::Ok();
}

template <typename T>
Result<T> Parsed(const controller::Record& record, Result<T> (*parse)(const json::object&)) {
  if (!record.damage.empty()) return DataLoss(record.key + ": " + record.damage);
  auto parsed = parse(record.body);
  if (!parsed.ok()) return DataLoss(record.key + ": " + parsed.status().message());
  return parsed;
}

template <typename T>
Result<std::vector<T>> AllOf(controller::Records* records, const char* kind,
                             const std::string& prefix, Result<T> (*parse)(const json::object&)) {
  std::vector<T> all;
  std::string after;
  do {
    TRY_ASSIGN(const controller::RecordPage page, records->List(kind, prefix, after, kPage));
    for (const controller::Record& record : page.records) {
      TRY_ASSIGN(T one, Parsed(record, parse));
      all.push_back(std::move(one));
    }
    after = page.next;
  } while (!after.empty());
  return all;
}

}  // namespace

json::object ToJson(const Database& database) {
  json::array tags;
  for (const data::TagPolicy& policy : database.tags) tags.push_back(data::ToJson(policy));
  return {{"name", database.name},
          {"team", database.team},
          {"locations", json::array(database.locations.begin(), database.locations.end())},
          {"tags", std::move(tags)}};
}

Result<Database> DatabaseFromJson(const json::object& object) {
  Database database;
  TRY_ASSIGN(database.name, GetString(object, "name"));
  TRY_ASSIGN(database.team, GetString(object, "team"));
  if (const json::value* const locations = object.if_contains("locations");
      locations != nullptr && locations->is_array())
    for (const json::value& one : locations->get_array())
      if (one.is_string()) database.locations.emplace_back(one.get_string());
  if (const json::value* const tags = object.if_contains("tags");
      tags != nullptr && tags->is_array()) {
    for (const json::value& one : tags->get_array()) {
      if (!one.is_object()) return InvalidArgument("tags: expected objects");
      TRY_ASSIGN(data::TagPolicy policy, data::TagPolicyFromJson(one.get_object()));
      database.tags.push_back(std::move(policy));
    }
  }
  return database;
}

Result<Database> Catalog::GetDatabase(const std::string& name) {
  if (!data::IsCatalogName(name)) return NoDatabase(name);
  const auto record = records_->Get(kDatabaseKind, name);
  if (record.status().code() == Code::kNotFound) return NoDatabase(name);
  TRY(record.status());
  return Parsed(*record, &DatabaseFromJson);
}

Result<std::vector<Database>> Catalog::Databases() {
  return AllOf(records_, kDatabaseKind, "", &DatabaseFromJson);
}

Status Catalog::SetDatabase(const Database& database) {
  if (!data::IsCatalogName(database.name))
    return InvalidArgument("name: got " + EscapedUtf8(database.name.substr(0, 80)) +
                           ", expected 1 to 63 of a-z, 0-9 and '_', the first no digit");
  TRY(CheckLocations(database));
  const Status changed = ChangeDatabase(database.name, [&](Database* stored) {
    stored->team = database.team;
    stored->locations = database.locations;
    return Status::Ok();
  });
  if (changed.code() != Code::kNotFound) return changed;
  return records_
      ->Put(kDatabaseKind, database.name, ToJson(database), controller::kAbsent, clock_->Wall())
      .status();
}

Status Catalog::ChangeDatabase(const std::string& name,
                               const std::function<Status(Database*)>& change) {
  for (int attempt = 1;; ++attempt) {
    const auto record = records_->Get(kDatabaseKind, name);
    if (record.status().code() == Code::kNotFound) return NoDatabase(name);
    TRY(record.status());
    TRY_ASSIGN(Database database, Parsed(*record, &DatabaseFromJson));
    TRY(change(&database));
    const Status written =
        records_->Put(kDatabaseKind, name, ToJson(database), record->version, clock_->Wall())
            .status();
    if (written.code() != Code::kAborted || attempt == kAttempts) return written;
  }
}

Status Catalog::RemoveDatabase(const std::string& name) {
  TRY(GetDatabase(name).status());
  TRY_ASSIGN(const std::vector<data::Table> tables, Tables(name));
  if (!tables.empty())
    return FailedPrecondition("database " + name + " has " + std::to_string(tables.size()) +
                              " tables; drop them first");
  return records_->Delete(kDatabaseKind, name, controller::kAnyVersion, clock_->Wall());
}

Status Catalog::SetTagPolicy(const std::string& database, const data::TagPolicy& policy) {
  return ChangeDatabase(database, [&](Database* stored) -> Status {
    std::erase_if(stored->tags, [&](const auto& one) { return one.tag == policy.tag; });
    if (stored->tags.size() == data::kMaxTagPolicies)
      return ResourceExhausted("database " + database + " has " +
                               std::to_string(data::kMaxTagPolicies) +
                               " policies of tags, the most that it may have");
    stored->tags.push_back(policy);
    std::ranges::sort(stored->tags, {}, &data::TagPolicy::tag);
    return Status::Ok();
  });
}

Status Catalog::RemoveTagPolicy(const std::string& database, const std::string& tag) {
  return ChangeDatabase(database, [&](Database* stored) -> Status {
    if (std::erase_if(stored->tags, [&](const auto& one) { return one.tag == tag; }) == 0)
      return NotFound("database " + database + " has no policy of the tag " + EscapedUtf8(tag));
    return Status::Ok();
  });
}

Result<data::Table> Catalog::GetTable(const std::string& name) {
  if (name.size() > controller::kMaxRecordKey) return NoTable(name);
  const auto record = records_->Get(kTableKind, name);
  if (record.status().code() == Code::kNotFound) return NoTable(name);
  TRY(record.status());
  return Parsed(*record, &data::TableFromJson);
}

Result<std::vector<data::Table>> Catalog::Tables(const std::string& database) {
  return AllOf(records_, kTableKind, database.empty() ? "" : database + ".", &data::TableFromJson);
}

Status Catalog::CheckSources(const Database& database, const data::Table& table) const {
  for (std::string source : table.sources) {
    if (source.starts_with("file://")) source.erase(0, 7);
    const bool inside = std::ranges::any_of(database.locations, [&](const std::string& location) {
      return source.starts_with(location) && source.size() > location.size();
    });
    if (inside && !HasParent(source)) continue;
    std::string locations;
    for (const std::string& one : database.locations)
      locations += (locations.empty() ? "" : ", ") + one;
    return InvalidArgument("sources: got " + EscapedUtf8(source.substr(0, 200)) +
                           ", expected it below a location of the database " + database.name +
                           " (" + locations + ")");
  }
  return Status::Ok();
}

Status Catalog::CreateTable(const data::Table& table) {
  TRY_ASSIGN(const Database database, GetDatabase(table.database));
  TRY(data::CheckTable(table));
  TRY(CheckSources(database, table));
  const Status made = records_
                          ->Put(kTableKind, table.full_name(), data::ToJson(table),
                                controller::kAbsent, clock_->Wall())
                          .status();
  if (made.code() != Code::kAlreadyExists) return made;
  return AlreadyExists("there is a table " + table.full_name() + " already");
}

Result<data::Table> Catalog::ChangeTable(const std::string& name,
                                         const std::function<Status(data::Table*)>& change) {
  for (int attempt = 1;; ++attempt) {
    const auto record = records_->Get(kTableKind, name);
    if (record.status().code() == Code::kNotFound) return NoTable(name);
    TRY(record.status());
    TRY_ASSIGN(data::Table table, Parsed(*record, &data::TableFromJson));
    TRY(change(&table));
    TRY(data::CheckTable(table));
    const Status written =
        records_->Put(kTableKind, name, data::ToJson(table), record->version, clock_->Wall())
            .status();
    if (written.ok()) return table;
    if (written.code() != Code::kAborted || attempt == kAttempts) return written;
  }
}

Status Catalog::RemoveTable(const std::string& name) {
  const Status removed =
      records_->Delete(kTableKind, name, controller::kAnyVersion, clock_->Wall());
  return removed.code() == Code::kNotFound ? NoTable(name) : removed;
}

}  // namespace shoal::api
