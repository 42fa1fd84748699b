// Uploads the `files` of a job by their digests: only what the server lacks, in bounded pieces,
// going on where an earlier upload was broken off.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "api/client/api_client.h"
#include "base/status.h"

namespace shoal::api {

struct UploadOptions {
  std::filesystem::path directory;  // the job's `files`
  std::filesystem::path cache;      // of the snapshot on this machine (host/files/blob_cache.h)
  std::string team;                 // empty: the server decides
  std::function<void(const std::string& sentence)> on_note;  // optional
};

// Returns the manifest, for the submission. Errors are those of host::TakeSnapshot and of the
// server; an unreachable server is tried again for some seconds.
Result<std::string> UploadFiles(const ApiClient& client, const UploadOptions& options);

}  // namespace shoal::api
