#include "cli/jobs/engines.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace shoal::cli {
namespace {

// The instance with this name; a file that cannot be read is reported by ConfiguredEngines.
std::string KindOf(const std::string& name) {
  const auto instances = ConfiguredEngines();
  if (!instances.ok()) return name;
  for (const controller::EngineInstance& instance : *instances) {
    if (instance.name == name) return instance.kind;
  }
  return name;
}

}  // namespace

Result<std::vector<controller::EngineInstance>> ConfiguredEngines() {
  const char* const file = std::getenv("SHOAL_ENGINES");
  if (file == nullptr || *file == 0) return controller::DefaultEngineInstances();
  return controller::ReadEngineInstances(file);
}

Result<std::unique_ptr<engine::Engine>> MakeEngine(const std::string& name) {
  TRY_ASSIGN(const std::vector<controller::EngineInstance> instances, ConfiguredEngines());
  for (const controller::EngineInstance& instance : instances) {
    if (instance.name == name) return controller::MakeEngine(instance);
  }
  return InvalidArgument("got the engine " + name + ", expected one of: " + EngineNames());
}

Result<std::unique_ptr<engine::Schedules>> MakeSchedules(const std::string& name,
                                                         const job::Marathon& settings) {
  return controller::MakeSchedules(KindOf(name), settings);
}

std::vector<std::string> EngineNameList() {
  auto instances = ConfiguredEngines();
  if (!instances.ok()) return controller::EngineKinds();
  return controller::EngineRegistry(std::move(*instances), {}).names();
}

std::string EngineNames() {
  std::string names;
  for (const std::string& name : EngineNameList()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

learn::DataLocation WhereDataIs(const std::string& name, const job::Job& job) {
  return controller::ReadsLocalPaths(KindOf(name), job) ? learn::DataLocation::kLocal
                                                        : learn::DataLocation::kRemote;
}

void AddEngineOption(CLI::App* sub, std::string* engine) {
  *engine = kLocalEngine;
  sub->add_option("--engine", *engine, "Engine that runs the tasks: " + EngineNames())
      ->envname("SHOAL_ENGINE")
      ->capture_default_str()
      ->type_name("NAME");
}

}  // namespace shoal::cli
