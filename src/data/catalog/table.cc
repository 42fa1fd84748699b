#include "data/catalog/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "data/objects/object_uri.h"

namespace shoal::data {
namespace {

constexpr size_t kMaxCatalogName = 63;
constexpr size_t kMaxColumnName = 1024;
constexpr size_t kMaxPrincipalName = 64;
constexpr size_t kMaxExceptions = 100;
constexpr size_t kMaxTagsOfColumn = 20;

Status NoColumn(const Table& table, const std::string& field, const std::string& column) {
  return InvalidArgument(field + ": table " + table.full_name() + " has no column " +
                         EscapedUtf8(column));
}

Status CheckPrincipals(const std::string& field, const std::set<std::string>& principals) {
  if (principals.size() > kMaxExceptions)
    return InvalidArgument(fmt::format("{}: got {} principals, expected at most {}", field,
                                       principals.size(), kMaxExceptions));
  for (const std::string& one : principals) TRY(CheckPrincipal(one).With(field));
  return Status::Ok();
}

Status CheckColumns(const Table& table) {
  if (table.columns.size() > kMaxTableColumns)
    return InvalidArgument(fmt::format("columns: got {}, expected at most {}", table.columns.size(),
                                       kMaxTableColumns));
  if (HasColumns(table.format) == table.columns.empty())
    return InvalidArgument(HasColumns(table.format)
                               ? "columns: got none, expected the columns of the files"
                               : "columns: expected none: files of the format " +
                                     std::string(NameOf(table.format)) + " have no columns");
  std::set<std::string_view> names;
  for (const TypedColumn& column : table.columns) {
    if (column.name.empty() || column.name.size() > kMaxColumnName)
      return InvalidArgument(fmt::format("columns: got a name of {} bytes, expected 1 to {}",
                                         column.name.size(), kMaxColumnName));
    if (!names.insert(column.name).second)
      return InvalidArgument("columns: two of them are called " + EscapedUtf8(column.name));
  }
  return Status::Ok();
}

Result<ColumnType> TypeOf(const std::string& name) {
  std::string known;
  for (const ColumnType type : {ColumnType::kBool, ColumnType::kInteger, ColumnType::kFloat,
                                ColumnType::kText, ColumnType::kNested, ColumnType::kNull}) {
    if (NameOf(type) == name) return type;
    known += (known.empty() ? "" : ", ") + std::string(NameOf(type));
  }
  return InvalidArgument("type: got " + EscapedUtf8(name.substr(0, 40)) + ", expected one of " +
                         known);
}

template <typename T>
json::array Texts(const T& texts) {
  json::array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

Result<std::vector<std::string>> ReadTexts(const json::object& object, std::string_view field) {
  std::vector<std::string> texts;
  const json::value* const value = object.if_contains(field);
  if (value == nullptr) return texts;
  if (!value->is_array()) return InvalidArgument(std::string(field) + ": expected a list of texts");
  for (const json::value& one : value->get_array()) {
    if (!one.is_string()) return InvalidArgument(std::string(field) + ": expected a list of texts");
    texts.emplace_back(one.get_string());
  }
  return texts;
}

Result<std::set<std::string>> ReadSet(const json::object& object, std::string_view field) {
  TRY_ASSIGN(const std::vector<std::string> texts, ReadTexts(object, field));
  return std::set<std::string>(texts.begin(), texts.end());
}

// The fields of an object within an object; none if it is missing.
Result<json::object> Inside(const json::object& object, std::string_view field) {
  const json::value* const value = object.if_contains(field);
  if (value == nullptr) return json::object();
  if (!value->is_object()) return InvalidArgument(std::string(field) + ": expected an object");
  return value->get_object();
}

int64_t Micros(WallTime time) { return time.time_since_epoch().count(); }

WallTime TimeOf(int64_t micros) { return WallTime(std::chrono::microseconds(micros)); }

}  // namespace

Status CheckPrincipal(const std::string& text) {
  if (text == "everyone") return Status::Ok();
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string name = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool good = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
  if ((kind == "user" || kind == "team") && good && !name.empty() &&
      name.size() <= kMaxPrincipalName)
    return Status::Ok();
  return InvalidArgument("got " + EscapedUtf8(text.substr(0, 80)) +
                         ", expected user:NAME, team:NAME or everyone");
}

bool IsCatalogName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxCatalogName && !(name[0] >= '0' && name[0] <= '9') &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

bool HasColumns(RecordFormat format) {
  return format == RecordFormat::kCsv || format == RecordFormat::kTsv ||
         format == RecordFormat::kJsonLines || format == RecordFormat::kParquet;
}

std::optional<size_t> Table::Find(std::string_view column) const {
  const auto found = std::ranges::find(columns, column, &TypedColumn::name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<size_t>(found - columns.begin());
}

Status CheckTable(const Table& table) {
  for (const std::string* name : {&table.database, &table.name}) {
    if (!IsCatalogName(*name))
      return InvalidArgument("name: got " + EscapedUtf8(name->substr(0, 80)) +
                             ", expected DATABASE.TABLE of a-z, 0-9 and '_', the first no digit");
  }
  if (table.sources.empty() || table.sources.size() > kMaxTableSources)
    return InvalidArgument(
        fmt::format("sources: got {}, expected 1 to {}", table.sources.size(), kMaxTableSources));
  for (const std::string& source : table.sources) {
    TRY_ASSIGN(const ObjectUri uri, ParseObjectUri(source));
    if (uri.scheme == ObjectScheme::kLocal && !uri.path.starts_with('/'))
      return InvalidArgument("sources: got " + EscapedUtf8(source) +
                             ", expected an absolute path or a URI");
  }
  TRY(CheckColumns(table));
  for (const auto& [column, tags] : table.tags) {
    if (!table.Find(column)) return NoColumn(table, "tags", column);
    for (const std::string& tag : tags)
      if (!IsCatalogName(tag) || tags.size() > kMaxTagsOfColumn)
        return InvalidArgument("tags: got " + EscapedUtf8(tag.substr(0, 80)) +
                               ", expected at most 20 of a-z, 0-9 and '_'");
  }
  for (const auto& [column, rule] : table.masks) {
    if (!table.Find(column)) return NoColumn(table, "masks", column);
    TRY(CheckPrincipals("except", rule.except));
  }
  if (table.grants.size() > kMaxGrants)
    return ResourceExhausted(fmt::format(
        "table {} has {} grants, the most that it may have; revoke some, or give one to a team",
        table.full_name(), kMaxGrants));
  for (const Grant& grant : table.grants) TRY(CheckGrant(table, grant));
  return Status::Ok();
}

Status CheckGrant(const Table& table, const Grant& grant) {
  TRY(CheckPrincipal(grant.principal).With("to"));
  const bool parts = !grant.columns.empty() || !grant.rows.empty() || !grant.masks.empty();
  if (parts && table.columns.empty())
    return InvalidArgument("table " + table.full_name() + " has the format " +
                           std::string(NameOf(table.format)) +
                           ", which has no columns; a grant gives all of it");
  for (const std::string& column : grant.columns)
    if (!table.Find(column)) return NoColumn(table, "columns", column);
  for (const auto& [column, mask] : grant.masks) {
    if (!table.Find(column)) return NoColumn(table, "masks", column);
    const bool given =
        grant.columns.empty() || std::ranges::find(grant.columns, column) != grant.columns.end();
    if (!given)
      return InvalidArgument("masks: got column " + EscapedUtf8(column) +
                             ", expected one of the columns that the grant gives");
  }
  if (grant.rows.empty()) return Status::Ok();
  return Predicate::Parse(grant.rows, table.columns).status().With("rows");
}

json::array ColumnsJson(const std::vector<TypedColumn>& columns) {
  json::array array;
  for (const TypedColumn& column : columns)
    array.push_back(json::object{{"name", column.name}, {"type", NameOf(column.type)}});
  return array;
}

Result<std::vector<TypedColumn>> ColumnsFromJson(const json::value& value) {
  if (!value.is_array() || value.get_array().size() > kMaxTableColumns)
    return InvalidArgument(
        fmt::format("columns: expected a list of at most {} objects", kMaxTableColumns));
  std::vector<TypedColumn> columns;
  for (const json::value& one : value.get_array()) {
    if (!one.is_object()) return InvalidArgument("columns: expected objects with name and type");
    TypedColumn column;
    TRY_ASSIGN(column.name, GetString(one.get_object(), "name"));
    TRY_ASSIGN(const std::string type, GetString(one.get_object(), "type"));
    TRY_ASSIGN(column.type, TypeOf(type));
    columns.push_back(std::move(column));
  }
  return columns;
}

json::object ToJson(const Grant& grant) {
  json::object masks;
  for (const auto& [column, mask] : grant.masks) masks[column] = TextOf(mask);
  json::object object{{"id", grant.id},
                      {"to", grant.principal},
                      {"columns", Texts(grant.columns)},
                      {"rows", grant.rows},
                      {"masks", std::move(masks)},
                      {"by", grant.by},
                      {"made_us", Micros(grant.made)}};
  if (grant.expires) object["expires_us"] = Micros(*grant.expires);
  return object;
}

Result<Grant> GrantFromJson(const json::object& object) {
  Grant grant;
  grant.id = GetStringOr(object, "id", "");
  TRY_ASSIGN(grant.principal, GetString(object, "to"));
  TRY_ASSIGN(grant.columns, ReadTexts(object, "columns"));
  grant.rows = GetStringOr(object, "rows", "");
  TRY_ASSIGN(const json::object masks, Inside(object, "masks"));
  for (const auto& [column, mask] : masks) {
    TRY_ASSIGN(grant.masks[std::string(column)],
               ParseMask(mask.is_string() ? std::string_view(mask.get_string()) : ""));
  }
  grant.by = GetStringOr(object, "by", "");
  grant.made = TimeOf(GetIntOr(object, "made_us", 0));
  if (object.contains("expires_us")) grant.expires = TimeOf(GetIntOr(object, "expires_us", 0));
  return grant;
}

json::object ToJson(const TagPolicy& policy) {
  json::object object{{"tag", policy.tag}, {"except", Texts(policy.except)}};
  object["action"] = policy.mask ? TextOf(*policy.mask) : "deny";
  return object;
}

Result<TagPolicy> TagPolicyFromJson(const json::object& object) {
  TagPolicy policy;
  TRY_ASSIGN(policy.tag, GetString(object, "tag"));
  if (!IsCatalogName(policy.tag))
    return InvalidArgument("tag: got " + EscapedUtf8(policy.tag.substr(0, 80)) +
                           ", expected a-z, 0-9 and '_'");
  TRY_ASSIGN(const std::string action, GetString(object, "action"));
  if (action != "deny") {
    TRY_ASSIGN(policy.mask, ParseMask(action));
  }
  TRY_ASSIGN(policy.except, ReadSet(object, "except"));
  TRY(CheckPrincipals("except", policy.except));
  return policy;
}

json::object ToJson(const Table& table) {
  json::object tags;
  for (const auto& [column, names] : table.tags) tags[column] = Texts(names);
  json::object masks;
  for (const auto& [column, rule] : table.masks)
    masks[column] = json::object{{"mask", TextOf(rule.mask)}, {"except", Texts(rule.except)}};
  json::array grants;
  for (const Grant& grant : table.grants) grants.push_back(ToJson(grant));
  return {{"database", table.database},
          {"name", table.name},
          {"owner", table.owner},
          {"sources", Texts(table.sources)},
          {"format", NameOf(table.format)},
          {"columns", ColumnsJson(table.columns)},
          {"credentials", table.credentials},
          {"tags", std::move(tags)},
          {"masks", std::move(masks)},
          {"grants", std::move(grants)}};
}

Result<Table> TableFromJson(const json::object& object) {
  Table table;
  TRY_ASSIGN(table.database, GetString(object, "database"));
  TRY_ASSIGN(table.name, GetString(object, "name"));
  TRY_ASSIGN(table.owner, GetString(object, "owner"));
  TRY_ASSIGN(table.sources, ReadTexts(object, "sources"));
  TRY_ASSIGN(const std::string format, GetString(object, "format"));
  TRY_ASSIGN(table.format, ParseRecordFormat(format));
  const json::value* const columns = object.if_contains("columns");
  if (columns != nullptr) {
    TRY_ASSIGN(table.columns, ColumnsFromJson(*columns));
  }
  table.credentials = GetStringOr(object, "credentials", "");
  TRY_ASSIGN(const json::object tags, Inside(object, "tags"));
  for (const auto& field : tags) {
    TRY_ASSIGN(table.tags[std::string(field.key())], ReadSet(tags, field.key()));
  }
  TRY_ASSIGN(const json::object masks, Inside(object, "masks"));
  for (const auto& field : masks) {
    TRY_ASSIGN(const json::object rule, Inside(masks, field.key()));
    MaskRule& own = table.masks[std::string(field.key())];
    TRY_ASSIGN(own.mask, ParseMask(GetStringOr(rule, "mask", "")));
    TRY_ASSIGN(own.except, ReadSet(rule, "except"));
  }
  const json::value* const grants = object.if_contains("grants");
  if (grants == nullptr || !grants->is_array()) return table;
  for (const json::value& one : grants->get_array()) {
    if (!one.is_object()) return InvalidArgument("grants: expected objects");
    TRY_ASSIGN(Grant grant, GrantFromJson(one.get_object()));
    table.grants.push_back(std::move(grant));
  }
  return table;
}

}  // namespace shoal::data
