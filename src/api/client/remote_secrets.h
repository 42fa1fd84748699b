// The secrets of a team of a server: controller::Secrets over the REST interface.
#pragma once

#include <memory>
#include <string>

#include "api/client/api_client.h"
#include "base/status.h"
#include "controller/secrets/secrets.h"

namespace shoal::api {

// The user's only team, or `default` for an administrator; otherwise InvalidArgument lists them.
Result<std::string> UsualTeam(const ApiClient& client);
// `team` empty: the user's only team, or `default` for an administrator; otherwise InvalidArgument
// lists them. `client` must outlive the result. Errors are those of the server.
Result<std::unique_ptr<controller::Secrets>> MakeRemoteSecrets(const ApiClient* client,
                                                               std::string team);

}  // namespace shoal::api
