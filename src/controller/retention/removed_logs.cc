#include "controller/retention/removed_logs.h"

#include "base/file.h"
#include "base/json.h"
#include "base/private_files.h"

namespace shoal::controller {
namespace {

constexpr const char* kName = "removed.json";
constexpr size_t kMaxMark = 4096;
constexpr size_t kMinute = 16;  // "2026-11-26T18:30"

}  // namespace

std::string SentenceOf(const RemovedLogs& removed) {
  std::string time = FormatWall(removed.time).substr(0, kMinute);
  time[time.find('T')] = ' ';
  return "removed by retention on " + time + " UTC: " + removed.why;
}

std::optional<RemovedLogs> ReadRemovedLogs(const std::filesystem::path& logs) {
  const auto text = ReadFile(logs / kName, kMaxMark);
  if (!text.ok()) return std::nullopt;
  const auto object = ParseJsonObject(*text);
  if (!object.ok()) return std::nullopt;
  RemovedLogs removed;
  removed.time = WallTime(std::chrono::microseconds(GetIntOr(*object, "time", 0)));
  removed.bytes = GetIntOr(*object, "bytes", 0);
  removed.why = GetStringOr(*object, "why", "");
  return removed;
}

Status WriteRemovedLogs(const std::filesystem::path& logs, const RemovedLogs& removed) {
  const json::object mark{{"time", removed.time.time_since_epoch().count()},
                          {"bytes", removed.bytes},
                          {"why", removed.why}};
  return WriteFileAtomically(logs / kName, ToText(mark) + "\n", 0600);
}

}  // namespace shoal::controller
