#include "cli/jobs/registry_place.h"

#include <pwd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "api/client/login_file.h"
#include "api/client/remote_models.h"
#include "cli/terminal/report.h"
#include "controller/files/stage_files.h"
#include "controller/files/state_home.h"
#include "data/objects/object_uri.h"

namespace shoal::cli {
namespace {

constexpr const char* kVariable = "SHOAL_REGISTRY";

std::string FromEnvironment() {
  const char* const value = std::getenv(kVariable);
  return value == nullptr ? "" : value;
}

}  // namespace

Result<OpenedRegistry> OpenModels(const Context& context, const RegistryOptions& options) {
  const bool from_environment = context.server.empty() && !FromEnvironment().empty();
  std::optional<api::Login> login;
  if (options.place.empty() && !from_environment) {
    TRY_ASSIGN(login, api::ChooseServer(context.server));
  }
  if (!login) {
    if (!options.team.empty())
      return InvalidArgument("--team: got " + options.team +
                             ", expected it with the models of a server only");
    return OpenRegistry(options.place);
  }
  OpenedRegistry opened;
  TRY_ASSIGN(const std::filesystem::path home, controller::FindStateHome());
  TRY_ASSIGN(opened.client, api::ApiClient::Make(*login));
  TRY_ASSIGN(opened.models,
             api::MakeRemoteModels(opened.client.get(), options.team,
                                   controller::FileCachePath(controller::StateHome(home))));
  return opened;
}

Result<OpenedRegistry> OpenRegistry(const std::string& place) {
  std::string root = place.empty() ? FromEnvironment() : place;
  if (root == "none") {
    return InvalidArgument(
        "SHOAL_REGISTRY is none, so there is no registry; name one with --registry");
  }
  if (root.empty()) {
    TRY_ASSIGN(const std::filesystem::path home, controller::FindStateHome());
    root = (home / "models").string();
  }
  OpenedRegistry opened;
  opened.stores = std::make_unique<data::ObjectStores>();
  TRY_ASSIGN(opened.models, serving::ModelRegistry::Open(opened.stores.get(), root));
  return opened;
}

void AddRegistryOptions(CLI::App* sub, RegistryOptions* options) {
  sub->add_option("--registry", options->place,
                  "Directory, s3://BUCKET/PREFIX or webhdfs://… with the versions "
                  "[$SHOAL_REGISTRY, else the server's, else models in the state home]")
      ->type_name("PLACE");
  sub->add_option("--team", options->team, "Team of the server [the user's only one]")
      ->type_name("TEAM");
}

std::string RegistryUser() {
  constexpr size_t kRoom = 16 << 10;
  std::vector<char> room(kRoom);
  struct passwd entry {};
  struct passwd* found = nullptr;
  const bool known =
      ::getpwuid_r(::geteuid(), &entry, room.data(), room.size(), &found) == 0 && found != nullptr;
  return known ? found->pw_name : std::to_string(::geteuid());
}

std::string RegisterModel(const job::Job& job, const controller::JobRecord& record) {
  const auto output = job.outputs.find("model");
  if (output == job.outputs.end() || FromEnvironment() == "none") return "";
  if (job.learn.contains("fold")) return "";  // of a cross-validation, which measures
  // On another machine, such as a volume of Kubernetes.
  std::error_code ignored;
  if (!data::IsRemoteUri(output->second) && !std::filesystem::is_directory(output->second, ignored))
    return "";
  const std::string name = serving::NameForPath(output->second);
  const auto add = [&]() -> Result<serving::ModelVersion> {
    TRY_ASSIGN(const OpenedRegistry registry, OpenRegistry(""));
    return registry.models->Add(name, output->second,
                                {.by = RegistryUser(), .job = record.id, .source = output->second});
  };
  const Result<serving::ModelVersion> added = add();
  if (added.ok()) return name + "@" + std::to_string(added->number);
  PrintNote("the model is in " + output->second + ", but the registry got no version of it: " +
            added.status().message() + "; `shoal models import` adds one");
  return "";
}

}  // namespace shoal::cli
