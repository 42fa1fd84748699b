// The jobs of a server, for commands: controller::Jobs over the REST interface.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/client/api_client.h"
#include "base/status.h"
#include "controller/jobs/jobs.h"

namespace shoal::api {

struct RemoteJobsOptions {
  std::string team;  // that new jobs belong to; empty: the server decides
  // Tells about the upload of `files`, and about lost connections; optional.
  std::function<void(const std::string& sentence)> on_note;
  std::vector<int> interrupts = {};  // signals that end Stop and Suspend with Cancelled
};

Result<std::unique_ptr<controller::Jobs>> MakeRemoteJobs(const Login& login,
                                                         RemoteJobsOptions options = {});

}  // namespace shoal::api
