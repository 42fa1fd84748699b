// What the coordinator tells a launcher to do, made from the core's state, and what a controller
// tells the coordinator. Used by coordinator.cc.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "rendezvous/lifecycle/coordinator_core.h"
#include "rendezvous/protocol/connection.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {

// What of a job is not in its description.
struct JobLocation {
  std::string id;
  std::string dir;
  std::string program;  // what "@shoal" stands for
  bool no_shared_filesystem =
      false;  // tasks do not see the directories that the job's outputs name
};

// The fields of "welcome".
json::object WelcomeFields(const CoordinatorCore& core, int task, bool lease,
                           const std::string& job_id);
// The order to start an attempt, with its environment rendered from `cluster`, which is the core's
// (its caller keeps it: making one costs O(tasks)). An error says why it has none.
Result<StartMessage> MakeStartMessage(const CoordinatorCore& core,
                                      const framework::ClusterDescription& cluster, int task,
                                      int attempt, const JobLocation& location);

// Sends what an action means to the launcher that it is for, but for kStart and kDescribe.
void SendLauncherCommand(const CoordinatorCore& core, const Action& action,
                         const std::string& job_id, Connection* connection);

// A controller's message as the core's event. InvalidArgument for an unknown or wrong one.
Result<Event> ParseControllerEvent(const std::string& type, const json::object& message);

// A launcher's message that is only news for the core: leased, port_conflict, diagnostics, ready.
// InvalidArgument for another.
Result<Event> ParseLauncherEvent(MemberId member, const std::string& type,
                                 const json::object& message);

// A launcher's heartbeat, and of it, or of another message, for how long the program stands still.
LauncherHeartbeat ParseHeartbeat(MemberId member, const json::object& message);
std::optional<Millis> ParseIdleTime(const json::object& message);

}  // namespace shoal::rendezvous
