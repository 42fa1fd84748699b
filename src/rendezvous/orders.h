// What the coordinator tells a launcher to do, made from the core's state, and what a controller
// tells the coordinator. Used by coordinator.cc.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "rendezvous/coordinator_core.h"
#include "rendezvous/peer.h"
#include "rendezvous/protocol.h"

namespace shoal::rendezvous {

// What of a job is not in its description.
struct JobPlace {
  std::string id;
  std::string dir;
  std::string program;  // what "@shoal" stands for
  bool apart = false;   // tasks do not see the directories that the job's outputs name
};

// The fields of "welcome".
json::object WelcomeOrder(const CoordinatorCore& core, int task, bool lease,
                          const std::string& job_id);
// The order to start an attempt, with its environment rendered from `cluster`, which is the core's
// (its caller keeps it: making one costs O(tasks)). An error says why it has none.
Result<StartMessage> StartOrder(const CoordinatorCore& core,
                                const dialect::ClusterDescription& cluster, int task, int attempt,
                                const JobPlace& place);

// Sends what an action means to the launcher that it is for, but for kStart and kDescribe.
void SendOrder(const CoordinatorCore& core, const Action& action, const std::string& job_id,
               Peer* peer);

// A controller's message as the core's event. InvalidArgument for an unknown or wrong one.
Result<Event> ControllerEvent(const std::string& type, const json::object& message);

// A launcher's message that is only news for the core: leased, stolen, evidence, ready.
// InvalidArgument for another.
Result<Event> LauncherEvent(MemberId member, const std::string& type, const json::object& message);

// A launcher's heartbeat, and of it, or of another message, for how long the program stands still.
Heard HeartbeatOf(MemberId member, const json::object& message);
std::optional<Millis> StillOf(const json::object& message);

}  // namespace shoal::rendezvous
