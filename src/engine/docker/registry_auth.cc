#include "engine/docker/registry_auth.h"

#include <cstdlib>
#include <filesystem>

#include "base/base64.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/process/child_process.h"

namespace shoal::engine::docker {
namespace {

constexpr const char* kHub = "https://index.docker.io/v1/";
// The user name that a helper prints if its secret is a token.
constexpr const char* kTokenUser = "<token>";
constexpr size_t kMaxConfig = 1 << 20;
constexpr std::chrono::milliseconds kHelperPatience{30'000};

const json::object* Member(const json::object& object, const std::string& field) {
  const json::value* value = object.if_contains(field);
  return value == nullptr ? nullptr : value->if_object();
}

// Configurations name registries with or without scheme and path.
std::string HostOf(std::string server) {
  const size_t scheme = server.find("://");
  if (scheme != std::string::npos) server.erase(0, scheme + 3);
  return server.substr(0, server.find('/'));
}

std::string HelperOf(const json::object& config, const std::string& server) {
  if (const json::object* helpers = Member(config, "credHelpers"); helpers != nullptr) {
    const std::string helper = GetStringOr(*helpers, server.c_str(), "");
    if (!helper.empty()) return helper;
  }
  return GetStringOr(config, "credsStore", "");
}

Result<std::optional<RegistryLogin>> FromHelper(const std::string& helper,
                                                const std::string& server, const AskHelper& ask) {
  if (helper.find('/') != std::string::npos)
    return InvalidArgument("credsStore: got \"" + helper + "\", expected a helper's name");
  const auto said = ask(helper, server);
  if (said.status().code() == Code::kNotFound) return std::optional<RegistryLogin>();
  if (!said.ok()) return said.status();
  TRY_ASSIGN(const json::object object, ParseJsonObject(*said));
  RegistryLogin login{server, "", "", ""};
  TRY_ASSIGN(login.user, GetString(object, "Username"));
  TRY_ASSIGN(login.password, GetString(object, "Secret"));
  if (login.user == kTokenUser) login = {server, "", "", login.password};
  return std::optional(login);
}

Result<std::optional<RegistryLogin>> FromAuths(const json::object& config,
                                               const std::string& server) {
  const json::object* const auths = Member(config, "auths");
  if (auths == nullptr) return std::optional<RegistryLogin>();
  for (const auto& [name, value] : *auths) {
    if (HostOf(name) != HostOf(server) || !value.is_object()) continue;
    const json::object& entry = value.get_object();
    RegistryLogin login{name, "", "", GetStringOr(entry, "identitytoken", "")};
    const std::string field = "auths." + std::string(name) + ".auth";
    const auto pair = DecodeBase64(GetStringOr(entry, "auth", ""));
    if (!pair.ok()) return pair.status().With(field);
    const size_t colon = pair->find(':');
    if (colon != std::string::npos) {
      login.user = pair->substr(0, colon);
      login.password = pair->substr(colon + 1);
    } else if (login.identity_token.empty()) {
      continue;
    }
    return std::optional(login);
  }
  return std::optional<RegistryLogin>();
}

Result<std::string> RunHelper(const std::string& helper, const std::string& server) {
  const std::string program = "docker-credential-" + helper;
  CommandLimits limits;
  limits.time = kHelperPatience;
  limits.bytes = kMaxConfig;
  TRY_ASSIGN(const CommandResult ran,
             RunCommand({program, "get"}, CurrentEnvironment(), server, limits));
  if (ran.exit_code == 0) return ran.out;
  const std::string said = (ran.out + ran.err).substr(0, 200);
  if (said.find("not found") != std::string::npos) return NotFound(said);
  return Unavailable(program + " exited with code " + std::to_string(ran.exit_code) + ": " + said);
}

}  // namespace

std::string RegistryOf(const std::string& image) {
  const size_t slash = image.find('/');
  const std::string first = slash == std::string::npos ? "" : image.substr(0, slash);
  const bool host = first.find_first_of(".:") != std::string::npos || first == "localhost";
  return host && first != "docker.io" && first != "index.docker.io" ? first : kHub;
}

Result<std::optional<RegistryLogin>> FindLogin(std::string_view config, const std::string& image,
                                               const AskHelper& ask) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(config));
  const std::string server = RegistryOf(image);
  const std::string helper = HelperOf(object, server);
  if (!helper.empty()) {
    TRY_ASSIGN(auto login, FromHelper(helper, server, ask));
    if (login) return login;
  }
  return FromAuths(object, server);
}

std::string EncodeLogin(const RegistryLogin& login) {
  json::object object{{"serveraddress", login.server}};
  if (login.identity_token.empty()) {
    object["username"] = login.user;
    object["password"] = login.password;
  } else {
    object["identitytoken"] = login.identity_token;
  }
  return EncodeBase64(ToText(object), Base64::kUrl);
}

Result<std::string> OwnLogin(const std::string& image) {
  const char* const directory = std::getenv("DOCKER_CONFIG");
  const char* const home = std::getenv("HOME");
  if (directory == nullptr && home == nullptr) return std::string();
  const std::filesystem::path path =
      (directory != nullptr ? std::filesystem::path(directory)
                            : std::filesystem::path(home) / ".docker") /
      "config.json";
  const auto config = ReadFile(path, kMaxConfig);
  if (config.status().code() == Code::kNotFound) return std::string();
  if (!config.ok()) return config.status();
  const auto login = FindLogin(*config, image, RunHelper);
  if (!login.ok()) return login.status().With(path.string());
  return *login ? EncodeLogin(**login) : std::string();
}

}  // namespace shoal::engine::docker
