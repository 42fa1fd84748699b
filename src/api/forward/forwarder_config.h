// Reads the file of `shoal server --forward-logs` (docs/logs.md#forwarding).
#pragma once

#include <filesystem>
#include <vector>

#include "api/forward/log_sink.h"
#include "base/status.h"

namespace shoal::api {

inline constexpr size_t kMaxForwarders = 16;

// InvalidArgument lists all errors with file, line and column.
Result<std::vector<ForwarderConfig>> ReadForwarders(const std::filesystem::path& file);

}  // namespace shoal::api
