#include "import/marathon/marathon_health.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace shoal::importer {
namespace {

constexpr int64_t kDay = 24 * 3600;

// False if the check uses a feature that Shoal's checks lack, which has been reported.
bool ReadPort(FieldReader* check, job::Role* role) {
  const auto number = check->ReadInteger("port", 0, 65535);
  const auto index = check->ReadInteger("portIndex", 0, 65535);
  const auto at = static_cast<size_t>(index.value_or(0));
  if (number && !index) {
    check->AddLoss("port", "it asked at port " + std::to_string(*number) +
                               "; not kept: Shoal leases a free port, say which with portIndex");
    return false;
  }
  if (at >= role->ports.size()) {
    check->AddLoss("portIndex", "it asked at port number " + std::to_string(at) +
                                    " of the app; not kept: there is none");
    return false;
  }
  role->health.port = role->ports[at].name;
  return true;
}

bool ReadWay(FieldReader* check, const std::string& protocol, const std::string& exports,
             job::Role* role) {
  job::Health& health = role->health;
  if (protocol == "COMMAND") {
    auto command = check->ReadObject("command");
    const std::string line = command ? command->ReadText("value").value_or("") : "";
    if (line.empty()) {
      check->AddError("command", "got a check without a command, expected command: {value: LINE}");
      return false;
    }
    health.by = job::ReadyBy::kCommand;
    health.command = {"sh", "-c", exports.empty() ? line : exports + "\n" + line};
    return true;
  }
  health.path = check->ReadText("path").value_or("/");
  if (protocol.ends_with("HTTPS")) {
    check->AddLoss("protocol",
                   "it asked by HTTPS; not kept: ask by a command, health: {command: [...]}");
    return false;
  }
  if (!ReadPort(check, role)) return false;
  health.by = protocol.ends_with("TCP") ? job::ReadyBy::kTcp : job::ReadyBy::kHttp;
  return true;
}

void ReadCheck(FieldReader* check, const std::string& exports, job::Role* role) {
  const std::string protocol =
      check
          ->ReadChoice("protocol", {"HTTP", "HTTPS", "TCP", "COMMAND", "MESOS_TCP", "MESOS_HTTP",
                                    "MESOS_HTTPS"})
          .value_or("HTTP");
  const auto seconds = [&](const char* field, int64_t least, std::chrono::milliseconds* time) {
    const auto got = check->ReadInteger(field, 0, kDay);
    if (got) *time = std::chrono::seconds(std::max(*got, least));
  };
  const bool kept = ReadWay(check, protocol, exports, role);
  job::Health& health = role->health;
  seconds("gracePeriodSeconds", 0, &health.grace);
  seconds("intervalSeconds", 1, &health.every);
  seconds("timeoutSeconds", 1, &health.timeout);
  const auto failures = check->ReadInteger("maxConsecutiveFailures", 0, 1000);
  if (failures) health.failures = static_cast<int>(std::max<int64_t>(*failures, 1));
  check->ReportUnread("MarathonAppHealthCheck");
  const bool told_only = failures == 0 && !protocol.starts_with("MESOS_") && protocol != "COMMAND";
  if (told_only)
    check->AddLoss("maxConsecutiveFailures",
                   "failures were reported and had no effect; not kept: Shoal's checks only end "
                   "unhealthy tasks");
  if (!kept || told_only) health = {};
}

}  // namespace

void ReadMarathonHealth(FieldReader* app, const std::string& exports, job::Role* role) {
  bool first = true;
  for (FieldReader& check : app->ReadObjects("healthChecks")) {
    if (!std::exchange(first, false)) {
      app->AddLoss("healthChecks", "there were several; kept is the first");
      return;
    }
    check.set_at("roles." + role->name + ".health");
    ReadCheck(&check, exports, role);
  }
}

}  // namespace shoal::importer
