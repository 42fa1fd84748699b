// The engines of this program, by name, and the option that selects one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/schedules.h"
#include "engine/tasks/job_files.h"
#include "learn/algorithm.h"

namespace CLI {
class App;
}

namespace shoal::cli {

inline constexpr const char* kLocalEngine = "local";

// Makes an engine without connecting to its daemon or cluster, which the first call does.
// InvalidArgument lists the known engines.
//
// `job_dir` finds the directories of other processes' jobs; without it the engine finds only its
// own jobs and those that the cluster names.
Result<std::unique_ptr<engine::Engine>> MakeEngine(const std::string& name,
                                                   engine::FindJobDir job_dir = {});

// Access to the schedules of the engine's cluster at the address in `settings`; does not connect
// yet. Unimplemented, with an alternative, for engines without schedules.
Result<std::unique_ptr<engine::Schedules>> MakeSchedules(const std::string& name,
                                                         const job::Marathon& settings);

// Names of the engines, the local one first; as a list and as text, "local, docker".
std::vector<std::string> EngineNameList();
std::string EngineNames();

// Tells whether tasks on this engine read their data from this machine's paths: not on a cluster
// with its own files, nor in a container whose `container.volumes` replace the paths. kHere for an
// unknown engine, which MakeEngine reports.
learn::DataLocation WhereDataIs(const std::string& name, const job::Job& job);

// Adds --engine with the default $SHOAL_ENGINE, else "local".
void AddEngineOption(CLI::App* sub, std::string* engine);

}  // namespace shoal::cli
