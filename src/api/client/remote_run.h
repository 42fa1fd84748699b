// Follows a job of a server like a run of this process: its stream becomes the calls of an
// Observer, and the commands of a JobRun become requests.
#pragma once

#include <memory>
#include <string>

#include "api/client/api_client.h"
#include "controller/run/controller.h"
#include "net/event_loop.h"

namespace shoal::api {

// `client` and `loop` must outlive the result, which is used on the loop's thread. Destroying it
// stops the following, not the job. The observer hears of a lost connection by on_note, and, when
// it stays lost, by on_failed(kUnavailable) and on_end with the job as it was last known.
std::unique_ptr<controller::JobRun> FollowRun(const ApiClient* client, net::Loop* loop,
                                              const controller::JobRecord& job,
                                              controller::Observer observer);

}  // namespace shoal::api
