// Commands in tasks and streams to their ports, on this machine. Used by the engines whose tasks
// are processes of this machine, or of another one on which they have a helper.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace shoal::engine {

// The program of a task: of its processes the first of its latest attempt.
struct TaskProgram {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // since boot
};
// NotFound if none runs here.
Result<TaskProgram> FindTaskProgram(const std::string& job_id, const std::string& role, int index);

// Found by the environment of what runs, so it needs no record and works beside the engine that
// runs the job. NotFound if the task has no running program.
Result<std::unique_ptr<Execution>> ExecLocally(
    const std::string& job_id, const std::string& role, int index, const ExecSpec& spec,
    const std::vector<std::filesystem::path>& group_bases);
Result<UniqueFd> DialLocally(const std::string& job_id, const std::string& role, int index,
                             uint16_t port);

// What is left on this machine of other lives of a task than `incarnation` is killed, as far as we
// may: a coordinator that goes on for a moment holds the journal. Blocks, at most two seconds.
void KillEarlierIncarnations(const std::string& job_id, const std::string& role, int index,
                             int incarnation);

// To a listener of this address, as this machine reaches it.
Result<UniqueFd> ConnectToListener(const std::string& address, uint16_t port);

}  // namespace shoal::engine
