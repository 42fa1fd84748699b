#include "rendezvous/coordinator/cluster_broadcast.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "rendezvous/protocol/cluster_message.h"

namespace shoal::rendezvous {

void ClusterDescriptionCache::Refresh() {
  const int64_t ended = core_->ends_version();
  if (generation_ == core_->generation() && ended_ == ended) return;
  generation_ = core_->generation();
  ended_ = ended;
  cluster_ = core_->Cluster();
  frame_.reset();
}

const framework::ClusterDescription& ClusterDescriptionCache::cluster() {
  Refresh();
  return cluster_;
}

std::shared_ptr<const std::string> ClusterDescriptionCache::frame() {
  Refresh();
  if (frame_ == nullptr) {
    frame_ = std::make_shared<const std::string>(
        EncodeClusterMessage(generation_, ToText(framework::ToJson(cluster_))));
  }
  return frame_;
}

void BroadcastThrottle::Request(int tasks) {
  // Pause between two broadcasts to n tasks: grows with n², up to this limit.
  constexpr double kNanos = 30;
  constexpr Duration kLongest = std::chrono::seconds(3);
  if (timer_ != 0) return;
  const double all = tasks;
  const auto gap = std::min<Duration>(
      std::chrono::nanoseconds(static_cast<int64_t>(all * all * kNanos)), kLongest);
  const TimePoint now = RealClock::Get()->Now();
  if (now >= told_ + gap) return Send();
  timer_ = loop_->After(told_ + gap - now, [this] {
    timer_ = 0;
    Send();
  });
}

void BroadcastThrottle::Send() {
  told_ = RealClock::Get()->Now();
  tell_();
}

}  // namespace shoal::rendezvous
