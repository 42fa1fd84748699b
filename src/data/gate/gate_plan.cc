#include "data/gate/gate_plan.h"

#include <utility>

#include "data/catalog/table.h"

namespace shoal::data {
namespace {

json::array TextArray(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

Result<const json::array*> ArrayOf(const json::object& object, std::string_view field) {
  const json::value* const value = object.if_contains(field);
  if (value == nullptr || !value->is_array())
    return InvalidArgument(std::string(field) + ": expected a list");
  return &value->get_array();
}

Result<std::vector<std::string>> TextsOf(const json::object& object, std::string_view field) {
  TRY_ASSIGN(const json::array* array, ArrayOf(object, field));
  std::vector<std::string> texts;
  for (const json::value& one : *array) {
    if (!one.is_string()) return InvalidArgument(std::string(field) + ": expected texts");
    texts.emplace_back(one.get_string());
  }
  return texts;
}

json::object TableJson(const GateTable& table) {
  json::array given;
  for (size_t i = 0; i < table.given.size(); ++i)
    given.push_back(json::object{{"column", table.given[i]}, {"mask", TextOf(table.masks[i])}});
  json::object environment;
  for (const auto& [name, value] : table.environment) environment[name] = value;
  return {{"data", table.data},
          {"table", table.table},
          {"sources", TextArray(table.sources)},
          {"locations", TextArray(table.locations)},
          {"format", NameOf(table.format)},
          {"filtered", table.filtered},
          {"columns", ColumnsJson(table.columns)},
          {"given", std::move(given)},
          {"rows", table.rows},
          {"environment", std::move(environment)}};
}

Status ReadGiven(const json::object& object, GateTable* table) {
  TRY_ASSIGN(const json::array* given, ArrayOf(object, "given"));
  for (const json::value& one : *given) {
    if (!one.is_object()) return InvalidArgument("given: expected objects");
    TRY_ASSIGN(const int64_t column, GetInt(one.get_object(), "column"));
    const bool ascends = table->given.empty() || std::cmp_greater(column, table->given.back());
    if (column < 0 || std::cmp_greater_equal(column, table->columns.size()) || !ascends)
      return InvalidArgument("given: got column " + std::to_string(column));
    table->given.push_back(static_cast<size_t>(column));
    TRY_ASSIGN(const std::string mask, GetString(one.get_object(), "mask"));
    TRY_ASSIGN(table->masks.emplace_back(), ParseMask(mask));
  }
  return Status::Ok();
}

Result<GateTable> TableOf(const json::object& object) {
  GateTable table;
  TRY_ASSIGN(table.data, GetString(object, "data"));
  TRY_ASSIGN(table.table, GetString(object, "table"));
  TRY_ASSIGN(table.sources, TextsOf(object, "sources"));
  TRY_ASSIGN(table.locations, TextsOf(object, "locations"));
  TRY_ASSIGN(const std::string format, GetString(object, "format"));
  TRY_ASSIGN(table.format, ParseRecordFormat(format));
  TRY_ASSIGN(table.filtered, GetBool(object, "filtered"));
  TRY_ASSIGN(const json::array* columns, ArrayOf(object, "columns"));
  TRY_ASSIGN(table.columns, ColumnsFromJson(*columns));
  TRY(ReadGiven(object, &table));
  TRY_ASSIGN(table.rows, GetString(object, "rows"));
  if (const json::value* const values = object.if_contains("environment");
      values != nullptr && values->is_object())
    for (const auto& [name, value] : values->get_object())
      if (value.is_string()) table.environment[std::string(name)] = value.get_string();
  return table;
}

}  // namespace

json::object ToJson(const GatePlan& plan) {
  json::array tables;
  for (const GateTable& table : plan.tables) tables.push_back(TableJson(table));
  return {{"address", plan.address},    {"port", plan.port},       {"token", plan.token},
          {"hash_key", plan.hash_key},  {"scratch", plan.scratch}, {"refusal", plan.refusal},
          {"tables", std::move(tables)}};
}

Result<GatePlan> GatePlanFromJson(const json::object& object) {
  GatePlan plan;
  TRY_ASSIGN(plan.address, GetString(object, "address"));
  TRY_ASSIGN(const int64_t port, GetInt(object, "port"));
  if (port < 0 || port > UINT16_MAX)
    return InvalidArgument("port: got " + std::to_string(port) + ", expected 0 to 65535");
  plan.port = static_cast<uint16_t>(port);
  TRY_ASSIGN(plan.token, GetString(object, "token"));
  TRY_ASSIGN(plan.hash_key, GetString(object, "hash_key"));
  TRY_ASSIGN(plan.scratch, GetString(object, "scratch"));
  TRY_ASSIGN(plan.refusal, GetString(object, "refusal"));
  TRY_ASSIGN(const json::array* tables, ArrayOf(object, "tables"));
  for (const json::value& one : *tables) {
    if (!one.is_object()) return InvalidArgument("tables: expected objects");
    TRY_ASSIGN(GateTable table, TableOf(one.get_object()));
    plan.tables.push_back(std::move(table));
  }
  return plan;
}

}  // namespace shoal::data
