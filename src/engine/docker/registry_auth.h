// What `docker login` has stored of the registries that images come from: a daemon knows nothing of
// it, who asks it to pull must say it each time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal::engine::docker {

struct RegistryLogin {
  std::string server;  // as the client's configuration calls it
  std::string user;
  std::string password;
  std::string identity_token;  // instead of both
};

// The registry that an image's name begins with ("ghcr.io", "localhost:5000"), else Docker's own,
// by the name that it has in configurations.
std::string RegistryOf(const std::string& image);

// What a credential helper (`docker-credential-HELPER get`) prints for a server; NotFound if it
// knows none.
using AskHelper =
    std::function<Result<std::string>(const std::string& helper, const std::string& server)>;

// Of a client's config.json; nothing if it has none for the image's registry. InvalidArgument names
// the field.
Result<std::optional<RegistryLogin>> FindLogin(std::string_view config, const std::string& image,
                                               const AskHelper& ask);

// The header X-Registry-Auth.
std::string EncodeLogin(const RegistryLogin& login);

// That of this user, from $DOCKER_CONFIG/config.json, else ~/.docker/config.json; empty if there is
// none. Runs a helper where the configuration names one.
Result<std::string> OwnLogin(const std::string& image);

}  // namespace shoal::engine::docker
