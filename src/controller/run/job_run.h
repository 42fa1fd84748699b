// The state machine of one job, from admission to the end of its cleanup. Created by
// Controller::Start.
#pragma once

#include <memory>
#include <string>

#include "controller/run/controller.h"

namespace shoal::controller {

std::unique_ptr<JobRun> StartJobRun(const ControllerOptions& options, net::Loop* loop,
                                    const std::string& id, job::Job job, Observer observer);

}  // namespace shoal::controller
