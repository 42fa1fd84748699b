// Copies a job's outputs from the server, in bounded pieces.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/client/api_client.h"
#include "base/status.h"
#include "controller/files/outputs.h"

namespace shoal::api {

// Copies `files` of the job whose outputs are at `target` ("/jobs/ID/outputs/") to
// directory/TASK.ATTEMPT/PATH; links are left out. A file is whole or absent. A file that the
// server does not find does not end the copy: NotFound at its end counts these and names the first.
// AlreadyExists if one would be replaced.
Status DownloadOutputs(const ApiClient& client, const std::string& target,
                       const std::vector<controller::OutputFile>& files,
                       const std::filesystem::path& directory);

}  // namespace shoal::api
