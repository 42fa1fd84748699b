// The cluster description on its way to the launchers: one binary message, compressed, made once
// for each state of the cluster and shared by all who get it. A description of n tasks goes to n
// launchers; ten thousand of them as JSON would be gigabytes to write, and to parse.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "framework/cluster.h"
#include "net/event_loop.h"
#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

struct ClusterMessage {
  int64_t generation = 0;
  std::string cluster;  // JSON text (docs/formats/cluster.md)
};

// Byte-exact in docs/formats/rendezvous.md; at most kMaxMessageDown bytes of text.
std::string EncodeClusterMessage(int64_t generation, std::string_view cluster);
// InvalidArgument for anything else than what EncodeClusterMessage gives.
Result<ClusterMessage> DecodeClusterMessage(std::string_view frame);

// The core's cluster, described when it has changed. The loop's thread only.
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

// When many tasks end one after the other, each is news to all of them: told at most so often that
// a coordinator spends no more than a part of its time on it.
class BroadcastThrottle {
 public:
  BroadcastThrottle(net::Loop* loop, std::function<void()> tell)
      : loop_(loop), tell_(std::move(tell)) {}
  ~BroadcastThrottle() { loop_->Cancel(timer_); }
  BroadcastThrottle(const BroadcastThrottle&) = delete;

  // All of so many tasks are to be told: now or soon.
  void Request(int tasks);

 private:
  void Send();

  net::Loop* const loop_;
  const std::function<void()> tell_;
  TimePoint told_;
  net::Loop::Id timer_ = 0;
};

}  // namespace shoal::rendezvous
