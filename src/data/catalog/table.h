// A table of the catalogue: columns over objects, and what people may read of it. Plain values.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "data/catalog/mask.h"
#include "data/catalog/predicate.h"
#include "data/formats/record_reader.h"

namespace shoal::data {

inline constexpr size_t kMaxTableColumns = 10'000;
inline constexpr size_t kMaxTableSources = 1000;
inline constexpr size_t kMaxGrants = 1000;      // of one table
inline constexpr size_t kMaxTagPolicies = 200;  // of one database

// "user:NAME", "team:NAME" or "everyone". InvalidArgument otherwise.
Status CheckPrincipal(const std::string& text);
// 1 to 63 of a-z, 0-9 and '_', the first no digit.
bool IsCatalogName(std::string_view name);
// Whether people may be given some columns or rows of a table of that format.
bool HasColumns(RecordFormat format);

// What a principal may read: these columns in the rows that the condition accepts.
struct Grant {
  std::string id;  // unique within the table
  std::string principal;
  std::vector<std::string> columns = {};   // empty: all
  std::string rows = {};                   // a Predicate; empty: all
  std::map<std::string, Mask> masks = {};  // by column
  std::optional<WallTime> expires = {};
  std::string by = {};
  WallTime made{};

  bool operator==(const Grant&) const = default;
};

// A mask of a column for everybody but the owner and the exceptions.
struct MaskRule {
  Mask mask;
  std::set<std::string> except;  // principals
  bool operator==(const MaskRule&) const = default;
};

// What holds for all columns of a database that have the tag; without a mask they are denied.
struct TagPolicy {
  std::string tag;
  std::optional<Mask> mask = {};
  std::set<std::string> except = {};
  bool operator==(const TagPolicy&) const = default;
};

struct Table {
  std::string database;
  std::string name;
  std::string owner;  // a user, who may read all of it
  std::vector<std::string> sources;
  RecordFormat format = RecordFormat::kText;
  std::vector<TypedColumn> columns;  // in the order of the files; empty where the format has none
  std::string credentials;           // name of a secret of the database's team; empty: none
  std::map<std::string, std::set<std::string>> tags;  // by column
  std::map<std::string, MaskRule> masks;              // by column
  std::vector<Grant> grants;

  std::string full_name() const { return database + "." + name; }
  // Its index among the columns; none.
  std::optional<size_t> Find(std::string_view column) const;
  bool operator==(const Table&) const = default;
};

// Checks names, limits, that all columns that are named exist, and parses the conditions.
// InvalidArgument names the field.
Status CheckTable(const Table& table);
Status CheckGrant(const Table& table, const Grant& grant);

json::object ToJson(const Table& table);
json::object ToJson(const Grant& grant);
json::object ToJson(const TagPolicy& policy);
// Of stored records. DataLoss or InvalidArgument names the field.
Result<Table> TableFromJson(const json::object& object);
Result<Grant> GrantFromJson(const json::object& object);
Result<TagPolicy> TagPolicyFromJson(const json::object& object);

json::array ColumnsJson(const std::vector<TypedColumn>& columns);
// From [{"name": …, "type": …}] of a request, a record or a plan; bounded by kMaxTableColumns.
Result<std::vector<TypedColumn>> ColumnsFromJson(const json::value& value);

}  // namespace shoal::data
