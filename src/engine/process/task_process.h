// A task that is a process of this machine: what it is started with, and how its end reads.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/process/spawn.h"

namespace shoal::engine {

// Variables that every task's process gets of the engine.
inline constexpr const char* kJobVariable = "SHOAL_JOB_ID";
inline constexpr const char* kTaskVariable = "SHOAL_TASK";  // "worker/3/0": role, index,
                                                            // incarnation
inline constexpr const char* kDirVariable = "SHOAL_JOB_DIR";

// PATH, HOME, LANG and what else a program of the user's needs, of this process.
std::vector<std::string> CleanEnvironment();

// Which start of which task.
struct TaskIdentity {
  std::string job_id;
  std::string job_dir;
  std::string role;
  int index = 0;
  int incarnation = 0;
};
// What kTaskVariable says of it.
std::string TaskVariable(const std::string& role, int index, int incarnation);
// How it is started: its own variables and ours over `environment`, the incarnation's number in its
// words, its log.
SpawnSpec MakeSpawnSpec(const TaskIdentity& place, const DesiredTask& desired,
                        std::vector<std::string> environment);
// From what waitpid gave; -1: it is not known how it ended.
TaskEnd DecodeWaitStatus(int wait_status);

}  // namespace shoal::engine
