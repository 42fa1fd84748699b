// Commands in containers: POST /exec starts `shoal enter` beside the task's launcher.
// Used by docker_engine.cc.
#pragma once

#include <memory>
#include <string>

#include "engine/docker/docker_api.h"
#include "engine/engine.h"

namespace shoal::engine::docker {

// `api` outlives the result.
Result<std::unique_ptr<Execution>> ExecInContainer(const DockerApi* api,
                                                   const std::string& container,
                                                   const std::string& job_id,
                                                   const std::string& role, int index,
                                                   const ExecSpec& spec);

}  // namespace shoal::engine::docker
