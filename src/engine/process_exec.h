// Commands in tasks and streams to their ports, on this machine. Used by local_engine.cc.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace shoal::engine {

// Found by the environment of what runs, so it needs no record and works beside the engine that
// runs the job. NotFound if the task has no running program.
Result<std::unique_ptr<Execution>> ExecLocally(
    const std::string& job_id, const std::string& role, int index, const ExecSpec& spec,
    const std::vector<std::filesystem::path>& group_bases);
Result<UniqueFd> DialLocally(const std::string& job_id, const std::string& role, int index,
                             uint16_t port);

// To a listener of this address, as this machine reaches it.
Result<UniqueFd> ConnectToListener(const std::string& address, uint16_t port);

}  // namespace shoal::engine
