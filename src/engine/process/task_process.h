// Tasks that are processes of this machine: how they are started, and how their ends are decoded.
#pragma once

#include <string>
#include <vector>

#include "base/access/directory_owner.h"
#include "engine/engine.h"
#include "engine/process/spawn.h"

namespace shoal::engine {

// Variables that the engine sets for every task's process.
inline constexpr const char* kJobVariable = "SHOAL_JOB_ID";
inline constexpr const char* kTaskVariable = "SHOAL_TASK";  // "worker/3/0": role, index,
                                                            // incarnation
inline constexpr const char* kDirVariable = "SHOAL_JOB_DIR";

// PATH, HOME, LANG and the other variables of this process that a user's program needs.
std::vector<std::string> CleanEnvironment();
// The variables that say where a user's object stores are and give credentials for them
// (docs/data.md). They are among those that CleanEnvironment keeps; a process that runs jobs of
// other people takes them out of its environment first.
const std::vector<std::string>& StoreVariables();

// An environment for a task of another user: HOME, USER, LOGNAME and SHELL of that user (without an
// entry of the machine's users: `job_dir` as HOME), and none of the directories that this process's
// variables name for its own user.
std::vector<std::string> EnvironmentOf(const UserIds& user, const std::string& job_dir,
                                       std::vector<std::string> environment);

// Identifies one start of a task.
struct TaskIdentity {
  std::string job_id;
  std::string job_dir;
  std::string role;
  int index = 0;
  int incarnation = 0;
};
// The value of kTaskVariable.
std::string TaskVariable(const std::string& role, int index, int incarnation);
// The start of a task: its own variables and the engine's override `environment`,
// kIncarnationPlaceholder is replaced in its arguments, and its output goes to the task's log.
SpawnSpec MakeSpawnSpec(const TaskIdentity& place, const DesiredTask& desired,
                        std::vector<std::string> environment);
// Decodes waitpid's status; -1: it is not known how the process ended.
TaskEnd DecodeWaitStatus(int wait_status);

}  // namespace shoal::engine
