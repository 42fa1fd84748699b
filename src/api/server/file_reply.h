// Sends a file as a streamed reply, with bounded memory.
#pragma once

#include <filesystem>
#include <string>

#include "api/server/call.h"
#include "base/file.h"
#include "base/status.h"

namespace shoal::api {

// Opens a regular file below `root` without following a link in any part of `path`. NotFound for a
// missing one and for a path that leaves `root`.
Result<UniqueFd> OpenBelow(const std::filesystem::path& root, const std::string& path);

// Answers with at most `limit` bytes of the file from `offset` on; reads on as the peer takes them.
void SendFile(const Backend& backend, const CallPtr& call, UniqueFd file, int64_t offset,
              int64_t limit);

}  // namespace shoal::api
