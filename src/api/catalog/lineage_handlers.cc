// The request about which jobs have trained on what.

#include <algorithm>
#include <map>
#include <utility>

#include "api/catalog/lineage.h"
#include "api/catalog/table_access.h"
#include "api/server/handlers.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;

// "ads.clicks" or "ads.clicks.email"; a column's name may have dots.
bool ReadsColumn(const LineageTable& table, const std::string& wanted) {
  if (wanted == table.table) return true;
  if (!wanted.starts_with(table.table + ".")) return false;
  const std::string column = wanted.substr(table.table.size() + 1);
  return std::ranges::find(table.columns, column) != table.columns.end();
}

bool IsOutput(const LineageRecord& record, std::string model) {
  while (model.size() > 1 && model.ends_with('/')) model.pop_back();
  return std::ranges::any_of(record.outputs, [&](const auto& output) {
    std::string place = output.second;
    while (place.size() > 1 && place.ends_with('/')) place.pop_back();
    return model == place || model.starts_with(place + "/");
  });
}

bool IsWanted(const Call& call, const LineageRecord& record) {
  const std::string job = call.arguments.Text("job");
  const std::string model = call.arguments.Text("model");
  const std::string column = call.arguments.Text("column");
  if (!job.empty() && record.job != job) return false;
  if (!model.empty() && !IsOutput(record, model)) return false;
  return column.empty() ||
         std::ranges::any_of(record.tables, [&](const auto& t) { return ReadsColumn(t, column); });
}

// Whether the user manages a table; of each table asked once.
class Managed {
 public:
  Managed(const Backend& backend, const Principal& principal)
      : backend_(backend), principal_(principal) {}
  bool Any(const LineageRecord& record) {
    return std::ranges::any_of(record.tables, [&](const auto& table) { return Is(table.table); });
  }

 private:
  bool Is(const std::string& name) {
    const auto known = known_.find(name);
    if (known != known_.end()) return known->second;
    bool managed = false;
    const auto table = backend_.tables.catalog->GetTable(name);
    const auto database = table.ok() ? backend_.tables.catalog->GetDatabase(table->database)
                                     : Result<Database>(table.status());
    if (database.ok()) managed = MayManage(principal_, *database, *table);
    return known_[name] = managed;
  }
  const Backend& backend_;
  const Principal& principal_;
  std::map<std::string, bool> known_;
};

}  // namespace

void ListLineage(const Backend& backend, const CallPtr& call) {
  Managed managed(backend, call->principal);
  std::vector<LineageRecord> found;
  const Status read = backend.tables.lineage->ForEach([&](const LineageRecord& record) {
    if (!IsWanted(*call, record)) return;
    if (call->principal.RoleIn(record.team) >= Role::kViewer || managed.Any(record))
      found.push_back(record);
  });
  if (!read.ok()) return call->answer(Problem(read));
  std::ranges::sort(found, std::greater<>(), &LineageRecord::time);
  json::array items;
  for (const LineageRecord& record : found) items.push_back(ToJson(record));
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)}}));
}

}  // namespace shoal::api
