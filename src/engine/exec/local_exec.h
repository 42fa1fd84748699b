// Commands in tasks and connections to their ports, on this machine. Used by the engines whose
// tasks are processes of this machine, and by helpers of engines on other hosts.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace shoal::engine {

// The program of a task: the first process of its latest attempt.
struct TaskProgram {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // since boot
};
// NotFound if none runs here.
Result<TaskProgram> FindTaskProgram(const std::string& job_id, const std::string& role, int index);

// Runs a command in a task. The task is found by the environment of the running processes, so this
// needs no records and works from any process. NotFound if the task has no running program.
Result<std::unique_ptr<Execution>> ExecLocally(
    const std::string& job_id, const std::string& role, int index, const ExecSpec& spec,
    const std::vector<std::filesystem::path>& group_bases);
Result<UniqueFd> DialLocally(const std::string& job_id, const std::string& role, int index,
                             uint16_t port);

// Kills the processes of earlier incarnations of a task on this machine, as far as permitted: a
// coordinator that still runs for a moment holds the journal's lock. Blocks for at most two
// seconds.
void KillEarlierIncarnations(const std::string& job_id, const std::string& role, int index,
                             int incarnation);

// Connects to a listener at this address. Unavailable if the connection is refused.
Result<UniqueFd> ConnectToListener(const std::string& address, uint16_t port);

}  // namespace shoal::engine
