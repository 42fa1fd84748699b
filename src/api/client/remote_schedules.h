// The scheduled jobs of a server, over the REST interface.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/client/login_file.h"
#include "base/status.h"
#include "controller/jobs/jobs.h"
#include "engine/schedules.h"

namespace shoal::api {

// A schedule of a server with its counts. Plain value.
struct RemoteSchedule {
  bool fresh = false;
  std::string next;  // RFC 3339; empty: never
};

// Thread-safe. Blocks, as ApiClient.
class RemoteSchedules : public engine::Schedules {
 public:
  // Adds or replaces the schedule of the file, whose first directory of `files` is uploaded.
  virtual Result<RemoteSchedule> PutFile(const std::string& name,
                                         const controller::NewFile& file) = 0;
};

// `team`: empty: the user's only one. `on_note`: of uploads; optional.
Result<std::unique_ptr<RemoteSchedules>> MakeRemoteSchedules(
    const Login& login, std::string team, std::function<void(const std::string&)> on_note);

}  // namespace shoal::api
