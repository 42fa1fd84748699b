#include "api/client/remote_usage.h"

#include <string>
#include <utility>
#include <vector>

namespace shoal::api {

Result<controller::UsageTable> RemoteUsage(const ApiClient& client,
                                           const controller::UsageQuery& query) {
  std::vector<std::pair<std::string, std::string>> fields = {
      {"from", controller::MonthText(query.first)}, {"to", controller::MonthText(query.last)}};
  if (!query.teams.empty()) fields.emplace_back("team", query.teams.front());
  TRY_ASSIGN(const json::object reply, client.Get("/api/v1/usage" + QueryText(fields)));
  const json::value* const items = reply.if_contains("items");
  if (items == nullptr || !items->is_array())
    return DataLoss("the server's answer about usage has no items");
  controller::UsageTable table;
  for (const json::value& item : items->get_array()) {
    if (!item.is_object()) return DataLoss("the server's answer about usage has a wrong item");
    TRY_ASSIGN(const auto row, controller::ParseUsageRow(item.get_object()));
    table[row.first] += row.second;
  }
  return table;
}

}  // namespace shoal::api
