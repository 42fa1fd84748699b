// The models of a team of a server: serving::Models over the REST interface.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "api/client/api_client.h"
#include "base/status.h"
#include "serving/registry/models.h"

namespace shoal::api {

// `team` empty: the user's only team, or `default` for an administrator; otherwise InvalidArgument
// lists them. `cache`: a directory for what Add uploads. `client` must outlive the result. Errors
// are those of the server.
Result<std::unique_ptr<serving::Models>> MakeRemoteModels(const ApiClient* client, std::string team,
                                                          std::filesystem::path cache);

}  // namespace shoal::api
