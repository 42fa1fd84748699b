// An engine's own files in a job's directory, for engines whose tasks see that directory
// (docs/formats/engine-records.md).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/status.h"

namespace shoal::engine {

std::filesystem::path EngineDir(const std::string& job_dir);
// What a launcher or coordinator says itself.
std::filesystem::path TaskLogPath(const std::string& job_dir, const std::string& role, int index);

// The last `limit` bytes; empty if there is no such file.
Result<std::string> ReadTail(const std::filesystem::path& path, size_t limit);

}  // namespace shoal::engine
