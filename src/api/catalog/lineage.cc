#include "api/catalog/lineage.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace shoal::api {
namespace {

constexpr const char* kKind = "lineage";
constexpr int kPage = 200;
constexpr int kAttempts = 10;

std::vector<std::string> TextsIn(const json::object& object, std::string_view field) {
  std::vector<std::string> texts;
  if (const json::value* const list = object.if_contains(field);
      list != nullptr && list->is_array())
    for (const json::value& one : list->get_array())
      if (one.is_string()) texts.emplace_back(one.get_string());
  return texts;
}

std::map<std::string, std::string> PairsIn(const json::object& object, std::string_view field) {
  std::map<std::string, std::string> pairs;
  if (const json::value* const inside = object.if_contains(field);
      inside != nullptr && inside->is_object())
    for (const auto& [name, value] : inside->get_object())
      if (value.is_string()) pairs[std::string(name)] = value.get_string();
  return pairs;
}

json::object PairsJson(const std::map<std::string, std::string>& pairs) {
  json::object object;
  for (const auto& [name, value] : pairs) object[name] = value;
  return object;
}

json::object TableJson(const LineageTable& table) {
  json::array objects;
  for (const data::ObjectInfo& one : table.objects)
    objects.push_back(json::object{{"uri", EscapedUtf8(one.uri)},
                                   {"bytes", one.bytes},
                                   {"version", EscapedUtf8(one.version)}});
  return {{"data", table.data},
          {"table", table.table},
          {"columns", json::array(table.columns.begin(), table.columns.end())},
          {"rows", table.rows},
          {"masks", PairsJson(table.masks)},
          {"gated", table.gated},
          {"objects", std::move(objects)},
          {"object_count", table.object_count}};
}

LineageTable TableIn(const json::object& object) {
  LineageTable table;
  table.data = GetStringOr(object, "data", "");
  table.table = GetStringOr(object, "table", "");
  table.columns = TextsIn(object, "columns");
  table.rows = GetStringOr(object, "rows", "");
  table.masks = PairsIn(object, "masks");
  table.gated = GetBoolOr(object, "gated", false);
  table.object_count =
      static_cast<uint64_t>(std::max<int64_t>(0, GetIntOr(object, "object_count", 0)));
  table.objects = ObjectsIn(object);
  return table;
}

}  // namespace

std::vector<data::ObjectInfo> ObjectsIn(const json::object& object) {
  std::vector<data::ObjectInfo> objects;
  const json::value* const list = object.if_contains("objects");
  if (list == nullptr || !list->is_array()) return objects;
  for (const json::value& one : list->get_array()) {
    if (!one.is_object()) continue;
    data::ObjectInfo& info = objects.emplace_back();
    info.uri = GetStringOr(one.get_object(), "uri", "");
    info.version = GetStringOr(one.get_object(), "version", "");
    info.bytes =
        static_cast<uint64_t>(std::max<int64_t>(0, GetIntOr(one.get_object(), "bytes", 0)));
  }
  return objects;
}

json::object ToJson(const LineageRecord& record) {
  json::array tables;
  for (const LineageTable& table : record.tables) tables.push_back(TableJson(table));
  return {{"job", record.job},
          {"name", record.name},
          {"user", record.user},
          {"team", record.team},
          {"time_us", record.time.time_since_epoch().count()},
          {"outputs", PairsJson(record.outputs)},
          {"tables", std::move(tables)}};
}

Result<LineageRecord> LineageFromJson(const json::object& object) {
  LineageRecord record;
  TRY_ASSIGN(record.job, GetString(object, "job"));
  record.name = GetStringOr(object, "name", "");
  record.user = GetStringOr(object, "user", "");
  record.team = GetStringOr(object, "team", "");
  record.time = WallTime(std::chrono::microseconds(GetIntOr(object, "time_us", 0)));
  record.outputs = PairsIn(object, "outputs");
  if (const json::value* const tables = object.if_contains("tables");
      tables != nullptr && tables->is_array())
    for (const json::value& one : tables->get_array())
      if (one.is_object()) record.tables.push_back(TableIn(one.get_object()));
  return record;
}

Status Lineage::Put(const LineageRecord& record) {
  return records_->Put(kKind, record.job, ToJson(record), controller::kAnyVersion, clock_->Wall())
      .status();
}

Result<LineageRecord> Lineage::Get(const std::string& job) {
  const auto record = records_->Get(kKind, job);
  if (record.status().code() == Code::kNotFound)
    return NotFound("nothing is known of tables that job " + EscapedUtf8(job.substr(0, 100)) +
                    " has read");
  TRY(record.status());
  return LineageFromJson(record->body);
}

Status Lineage::NoteObjects(const std::string& job, const std::string& data,
                            const std::vector<data::ObjectInfo>& objects) {
  for (int attempt = 1;; ++attempt) {
    TRY_ASSIGN(const controller::Record stored, records_->Get(kKind, job));
    TRY_ASSIGN(LineageRecord record, LineageFromJson(stored.body));
    for (LineageTable& table : record.tables) {
      if (table.data != data) continue;
      table.object_count = objects.size();
      table.objects.assign(
          objects.begin(),
          objects.begin() + static_cast<ptrdiff_t>(std::min(objects.size(), kMaxLineageObjects)));
    }
    const Status written =
        records_->Put(kKind, job, ToJson(record), stored.version, clock_->Wall()).status();
    if (written.code() != Code::kAborted || attempt == kAttempts) return written;
  }
}

Status Lineage::ForEach(const std::function<void(const LineageRecord&)>& visit) {
  std::string after;
  do {
    TRY_ASSIGN(const controller::RecordPage page, records_->List(kKind, "", after, kPage));
    for (const controller::Record& stored : page.records) {
      const auto record = LineageFromJson(stored.body);
      if (record.ok()) visit(*record);
    }
    after = page.next;
  } while (!after.empty());
  return Status::Ok();
}

}  // namespace shoal::api
