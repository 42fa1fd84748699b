// Carries out the core's actions: messages to launchers, the cluster description, starts of
// programs, the verdict's file. Used by coordinator.cc, behind the DurabilityGate, which decides
// when.
//
// Belongs to the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/event_loop.h"
#include "rendezvous/coordinator/cluster_broadcast.h"
#include "rendezvous/coordinator/launcher_commands.h"
#include "rendezvous/coordinator/member_table.h"
#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

struct ActionPerformerCallbacks {
  // A sentence for people.
  std::function<void(const std::string&)> note;
  // A task that cannot be started. Comes from the loop, never during Perform.
  std::function<void(const LauncherRefused&)> refused;
  // The core's last action: the job has ended.
  std::function<void()> exit;
};

class ActionPerformer {
 public:
  // `core` and `members` outlive it.
  ActionPerformer(net::Loop* loop, const CoordinatorCore* core, MemberTable* members,
                  JobLocation location, ActionPerformerCallbacks calls);
  ~ActionPerformer();
  ActionPerformer(const ActionPerformer&) = delete;

  // The DirectoryIdentity of the logs' directory, which launchers compare with theirs.
  void SetLogDirectory(std::string identity) { log_directory_id_ = std::move(identity); }
  // Any action but kRecord. Actions for a connection that has gone do nothing.
  void Perform(const Action& action);

 private:
  void SendDescription(const Action& action, Connection* connection);
  void BroadcastDescription();
  void StartProgram(const Action& action, Connection* connection);
  void WriteVerdict();

  net::Loop* const loop_;
  const CoordinatorCore* const core_;
  MemberTable* const members_;
  const JobLocation location_;
  const ActionPerformerCallbacks calls_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::string log_directory_id_;
  ClusterDescriptionCache description_cache_{core_};
  BroadcastThrottle broadcast_throttle_{loop_, [this] { BroadcastDescription(); }};
};

}  // namespace shoal::rendezvous
