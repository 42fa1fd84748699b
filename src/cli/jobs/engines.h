// The engines that this program can run jobs on, by name, and the option that chooses one.
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

// Does not reach for the engine's daemon or cluster: that is the first call's business.
// InvalidArgument names the engines that there are.
// `job_dir` finds the directories of jobs that other processes made; without it only jobs of this
// engine object, and those that their cluster names, are found.
Result<std::unique_ptr<engine::Engine>> MakeEngine(const std::string& name,
                                                   engine::FindJobDir job_dir = {});

// The schedules of the cluster that the engine is of; `settings` say where that is. Asks nobody
// yet. Unimplemented, with what to do instead, for engines that have none.
Result<std::unique_ptr<engine::Schedules>> MakeSchedules(const std::string& name,
                                                         const job::Marathon& settings);

// What MakeEngine takes, the local one first; and as text, "local, docker".
std::vector<std::string> EngineNameList();
std::string EngineNames();

// Whether tasks of the job on the engine of that name read their data where this machine has it:
// not on a cluster with files of its own, nor in a container where `container.volumes` has put
// other files there. kLocal for a name that is not known: MakeEngine says so.
learn::DataLocation WhereDataIs(const std::string& name, const job::Job& job);

// Adds --engine, whose default is the environment's SHOAL_ENGINE, else "local".
void AddEngineOption(CLI::App* sub, std::string* engine);

}  // namespace shoal::cli
