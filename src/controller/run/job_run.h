// The state machine of one job, from admission to the end of its cleanup. Created by
// Controller::Start and the supervisor.
#pragma once

#include <memory>

#include "controller/run/controller.h"
#include "controller/run/stored_run.h"

namespace shoal::controller {

// Must be called on the loop's thread. A job that has been admitted is continued; `stored` must be
// current, so its owner must be this process.
std::unique_ptr<JobRun> StartJobRun(const ControllerOptions& options, net::Loop* loop,
                                    StoredRun stored, Observer observer);

}  // namespace shoal::controller
