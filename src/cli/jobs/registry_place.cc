#include "cli/jobs/registry_place.h"

#include <pwd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/terminal/report.h"
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

Result<OpenedRegistry> OpenRegistry(const std::string& option) {
  std::string root = option.empty() ? FromEnvironment() : option;
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

void AddRegistryOption(CLI::App* sub, std::string* option) {
  sub->add_option("--registry", *option,
                  "Directory, s3://BUCKET/PREFIX or webhdfs://… with the versions "
                  "[$SHOAL_REGISTRY, else models in the state home]")
      ->type_name("PLACE");
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
