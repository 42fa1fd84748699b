// Paths of an engine's own files in a job's directory, for engines whose tasks see that directory
// (docs/formats/engine-records.md).
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "base/status.h"

namespace shoal::engine {

std::filesystem::path EngineDir(const std::string& job_dir);
// The log of a launcher's or coordinator's own output.
std::filesystem::path TaskLogPath(const std::string& job_dir, const std::string& role, int index);

// Finds the directory of a job that another controller process started, by the job's id; the
// engine's records are in it. Empty if it is not known.
using FindJobDir = std::function<std::string(const std::string& job_id)>;

// The last `limit` bytes of a file; empty if there is no such file.
Result<std::string> ReadTail(const std::filesystem::path& path, size_t limit);

}  // namespace shoal::engine
