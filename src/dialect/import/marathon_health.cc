#include "dialect/import/marathon_health.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace shoal::dialect {
namespace {

constexpr int64_t kDay = 24 * 3600;

// False if it asks for what our checks do not; that was told.
bool ReadPort(Section* check, job::Role* role) {
  const auto number = check->Integer("port", 0, 65535);
  const auto index = check->Integer("portIndex", 0, 65535);
  const auto at = static_cast<size_t>(index.value_or(0));
  if (number && !index) {
    check->Lose("port", "it asked at port " + std::to_string(*number) +
                            "; not kept: Shoal leases a free port, say which with portIndex");
    return false;
  }
  if (at >= role->ports.size()) {
    check->Lose("portIndex", "it asked at port number " + std::to_string(at) +
                                 " of the app; not kept: there is none");
    return false;
  }
  role->health.port = role->ports[at].name;
  return true;
}

bool ReadWay(Section* check, const std::string& protocol, const std::string& exports,
             job::Role* role) {
  job::Health& health = role->health;
  if (protocol == "COMMAND") {
    auto command = check->Sub("command");
    const std::string line = command ? command->Text("value").value_or("") : "";
    if (line.empty()) {
      check->Wrong("command", "got a check without a command, expected command: {value: LINE}");
      return false;
    }
    health.by = job::ReadyBy::kCommand;
    health.command = {"sh", "-c", exports.empty() ? line : exports + "\n" + line};
    return true;
  }
  health.path = check->Text("path").value_or("/");
  if (protocol.ends_with("HTTPS")) {
    check->Lose("protocol",
                "it asked by HTTPS; not kept: ask by a command, health: {command: [...]}");
    return false;
  }
  if (!ReadPort(check, role)) return false;
  health.by = protocol.ends_with("TCP") ? job::ReadyBy::kTcp : job::ReadyBy::kHttp;
  return true;
}

void ReadCheck(Section* check, const std::string& exports, job::Role* role) {
  const std::string protocol = check
                                   ->Choice("protocol", {"HTTP", "HTTPS", "TCP", "COMMAND",
                                                         "MESOS_TCP", "MESOS_HTTP", "MESOS_HTTPS"})
                                   .value_or("HTTP");
  const auto seconds = [&](const char* field, int64_t least, std::chrono::milliseconds* time) {
    const auto got = check->Integer(field, 0, kDay);
    if (got) *time = std::chrono::seconds(std::max(*got, least));
  };
  const bool kept = ReadWay(check, protocol, exports, role);
  job::Health& health = role->health;
  seconds("gracePeriodSeconds", 0, &health.grace);
  seconds("intervalSeconds", 1, &health.every);
  seconds("timeoutSeconds", 1, &health.timeout);
  const auto failures = check->Integer("maxConsecutiveFailures", 0, 1000);
  if (failures) health.failures = static_cast<int>(std::max<int64_t>(*failures, 1));
  check->Rest("MarathonAppHealthCheck");
  const bool told_only = failures == 0 && !protocol.starts_with("MESOS_") && protocol != "COMMAND";
  if (told_only)
    check->Lose("maxConsecutiveFailures",
                "what it found was told and never acted on; not kept: Shoal asks only to end who "
                "is not well");
  if (!kept || told_only) health = {};
}

}  // namespace

void ReadMarathonHealth(Section* app, const std::string& exports, job::Role* role) {
  bool first = true;
  for (Section& check : app->Subs("healthChecks")) {
    if (!std::exchange(first, false)) {
      app->Lose("healthChecks", "there were several; kept is the first");
      return;
    }
    check.set_at("roles." + role->name + ".health");
    ReadCheck(&check, exports, role);
  }
}

}  // namespace shoal::dialect
