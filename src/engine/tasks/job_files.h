// An engine's own files in a job's directory, for engines whose tasks see that directory
// (docs/formats/engine-records.md).
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "base/status.h"

namespace shoal::engine {

std::filesystem::path EngineDir(const std::string& job_dir);
// What a launcher or coordinator says itself.
std::filesystem::path TaskLogPath(const std::string& job_dir, const std::string& role, int index);

// The directory of a job that another process of ours made, by its id: its engine kept there where
// the job is. Empty: none is known.
using FindJobDir = std::function<std::string(const std::string& job_id)>;

// The last `limit` bytes; empty if there is no such file.
Result<std::string> ReadTail(const std::filesystem::path& path, size_t limit);

}  // namespace shoal::engine
