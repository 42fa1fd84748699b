// Registry credentials that `docker login` has stored. The daemon does not know them: each pull
// request must carry them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal::engine::docker {

// Credentials of one registry: user and password, or an identity token.
struct RegistryLogin {
  std::string server;  // its name in the client's configuration
  std::string user;
  std::string password;
  std::string identity_token;  // instead of both
};

// The registry at the beginning of an image's name ("ghcr.io", "localhost:5000"), else Docker Hub's
// name in configuration files.
std::string RegistryOf(const std::string& image);

// Runs a credential helper (`docker-credential-HELPER get`) for a server; NotFound if it has no
// credentials.
using AskHelper =
    std::function<Result<std::string>(const std::string& helper, const std::string& server)>;

// The login for the image's registry in a client's config.json, if there is one. InvalidArgument
// names the field.
Result<std::optional<RegistryLogin>> FindLogin(std::string_view config, const std::string& image,
                                               const AskHelper& ask);

// The value of the header X-Registry-Auth.
std::string EncodeLogin(const RegistryLogin& login);

// The X-Registry-Auth header from $DOCKER_CONFIG/config.json, else ~/.docker/config.json; empty if
// there is no login. Runs a credential helper if the configuration names one.
Result<std::string> OwnLogin(const std::string& image);

}  // namespace shoal::engine::docker
