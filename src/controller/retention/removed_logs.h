// The mark of a job whose logs were removed before its record (docs/formats/log-segments.md):
// written by the log keeper, shown by `shoal logs` and the REST interface.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace shoal::controller {

struct RemovedLogs {
  WallTime time{};
  int64_t bytes = 0;  // on disk
  std::string why;    // "older than 30 days"
};

// "removed by retention on 2026-11-26 18:30 UTC: older than 30 days".
std::string SentenceOf(const RemovedLogs& removed);

// In the directory of a job's logs. None without a mark, or one that cannot be read.
std::optional<RemovedLogs> ReadRemovedLogs(const std::filesystem::path& logs);
Status WriteRemovedLogs(const std::filesystem::path& logs, const RemovedLogs& removed);

}  // namespace shoal::controller
