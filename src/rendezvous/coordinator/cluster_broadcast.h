// When the cluster description is rendered and broadcast to launchers (protocol/cluster_message.h).
// Used by coordinator.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "framework/cluster.h"
#include "net/event_loop.h"
#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

// The core's cluster description, rendered again only when it has changed. The loop's thread only.
class ClusterDescriptionCache {
 public:
  explicit ClusterDescriptionCache(const CoordinatorCore* core) : core_(core) {}

  // Valid until the next call.
  const framework::ClusterDescription& cluster();
  std::shared_ptr<const std::string> frame();

 private:
  void Refresh();

  const CoordinatorCore* const core_;
  int64_t generation_ = -1;
  int64_t ended_ = -1;
  framework::ClusterDescription cluster_;
  std::shared_ptr<const std::string> frame_;
};

// Limits how often the description is broadcast while many tasks end one after the other, so that
// it costs only a fraction of the coordinator's time.
class BroadcastThrottle {
 public:
  BroadcastThrottle(net::Loop* loop, std::function<void()> tell)
      : loop_(loop), tell_(std::move(tell)) {}
  ~BroadcastThrottle() { loop_->Cancel(timer_); }
  BroadcastThrottle(const BroadcastThrottle&) = delete;

  // Broadcasts to `tasks` launchers, now or soon.
  void Request(int tasks);

 private:
  void Send();

  net::Loop* const loop_;
  const std::function<void()> tell_;
  TimePoint told_;
  net::Loop::Id timer_ = 0;
};

}  // namespace shoal::rendezvous
