// The engines that commands can use, by name, and the option that selects one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/engines/engine_registry.h"
#include "engine/engine.h"
#include "engine/schedules.h"
#include "learn/algorithm.h"

namespace CLI {
class App;
}

namespace shoal::cli {

using controller::kLocalEngine;

// The instances in the file that $SHOAL_ENGINES names; without it one instance of each kind.
Result<std::vector<controller::EngineInstance>> ConfiguredEngines();

// Makes an engine without connecting to its daemon or cluster, which the first call does. It finds
// only its own jobs. InvalidArgument lists the known engines.
Result<std::unique_ptr<engine::Engine>> MakeEngine(const std::string& name);

// Access to the schedules of the engine's cluster at the address in `settings`; does not connect
// yet. Unimplemented, with an alternative, for engines without schedules.
Result<std::unique_ptr<engine::Schedules>> MakeSchedules(const std::string& name,
                                                         const job::Marathon& settings);

// Names of the engines, the local one first unless a file says otherwise; as a list and as text,
// "local, docker".
std::vector<std::string> EngineNameList();
std::string EngineNames();

// Tells whether tasks on this engine read their data from this machine's paths
// (controller::ReadsLocalPaths). kLocal for an unknown engine, which MakeEngine reports.
learn::DataLocation WhereDataIs(const std::string& name, const job::Job& job);

// Adds --engine with the default $SHOAL_ENGINE, else "local".
void AddEngineOption(CLI::App* sub, std::string* engine);

}  // namespace shoal::cli
