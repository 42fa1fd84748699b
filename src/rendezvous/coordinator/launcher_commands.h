// Translates between the core and the wire: actions to messages for launchers, messages of
// launchers and controllers to events. Used by coordinator.cc.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "rendezvous/lifecycle/coordinator_core.h"
#include "rendezvous/logs/log_segment.h"
#include "rendezvous/protocol/connection.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {

// Where a job runs; not part of its description.
struct JobLocation {
  std::string id;
  std::string dir;
  std::string program;  // absolute path of shoal; replaces "@shoal" in commands
  bool no_shared_filesystem =
      false;  // tasks do not see the directories that the job's outputs name
};

// The fields of "welcome".
json::object WelcomeFields(const CoordinatorCore& core, int task, bool lease,
                           const std::string& job_id);
// The message that starts an attempt, with its environment rendered from `cluster`, which must be
// the core's (the caller caches it: rendering costs O(tasks)). An error explains why the task
// cannot be started.
Result<StartMessage> MakeStartMessage(const CoordinatorCore& core,
                                      const framework::ClusterDescription& cluster, int task,
                                      int attempt, const JobLocation& location);

// Sends the message for an action to its launcher. Not for kStart and kDescribe.
void SendLauncherCommand(const CoordinatorCore& core, const Action& action,
                         const std::string& job_id, Connection* connection);

// InvalidArgument for an unknown or malformed message.
Result<Event> ParseControllerEvent(const std::string& type, const json::object& message);

// The messages "leased", "stolen", "evidence" and "ready". InvalidArgument for others.
Result<Event> ParseLauncherEvent(MemberId member, const std::string& type,
                                 const json::object& message);

// A heartbeat; and from any message, for how long the program has been idle.
LauncherHeartbeat ParseHeartbeat(MemberId member, const json::object& message);
std::optional<Millis> ParseIdleTime(const json::object& message);

// The log of an attempt.
LogKey LogKeyOf(const CoordinatorCore& core, int task, int attempt);
// The attempt that a message names by role, index and attempt. InvalidArgument unless it was
// started.
Result<LogKey> ParseAttempt(const CoordinatorCore& core, const json::object& message);
// The log of an attempt of the launcher's own task. Errors if that was never started.
Result<LogKey> StartedLog(const CoordinatorCore& core, MemberId member, int64_t attempt);

}  // namespace shoal::rendezvous
