#include "rendezvous/coordinator/cluster_broadcast.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/json.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

// 'S' 'D', version, 0, u32 bytes of text, i64 generation, one zstd frame; little-endian.
constexpr size_t kHead = 16;
constexpr int kLevel = 1;

}  // namespace

std::string EncodeClusterMessage(int64_t generation, std::string_view cluster) {
  SHOAL_CHECK(cluster.size() <= kMaxMessageDown);
  std::string frame(kHead + ::ZSTD_compressBound(cluster.size()), '\0');
  const auto bytes = static_cast<uint32_t>(cluster.size());
  std::memcpy(frame.data(), "SD\x01", 3);
  std::memcpy(frame.data() + 4, &bytes, sizeof bytes);
  std::memcpy(frame.data() + 8, &generation, sizeof generation);
  const size_t size = ::ZSTD_compress(frame.data() + kHead, frame.size() - kHead, cluster.data(),
                                      cluster.size(), kLevel);
  SHOAL_CHECK(::ZSTD_isError(size) == 0);
  frame.resize(kHead + size);
  frame.shrink_to_fit();
  return frame;
}

Result<ClusterMessage> DecodeClusterMessage(std::string_view frame) {
  if (frame.size() < kHead || frame.substr(0, 4) != std::string_view("SD\x01\0", 4)) {
    return InvalidArgument("not a description of version 1");
  }
  uint32_t bytes = 0;
  ClusterMessage description;
  std::memcpy(&bytes, frame.data() + 4, sizeof bytes);
  std::memcpy(&description.generation, frame.data() + 8, sizeof description.generation);
  if (bytes > kMaxMessageDown) {
    return InvalidArgument("a description of " + std::to_string(bytes) + " bytes, at most " +
                           std::to_string(kMaxMessageDown) + " may be");
  }
  const std::string_view packed = frame.substr(kHead);
  // Before memory is taken for what it claims to be.
  if (::ZSTD_getFrameContentSize(packed.data(), packed.size()) != bytes) {
    return InvalidArgument("a description whose length is not what its head says");
  }
  description.cluster.resize(bytes);
  const size_t size =
      ::ZSTD_decompress(description.cluster.data(), bytes, packed.data(), packed.size());
  if (::ZSTD_isError(size) != 0 || size != bytes) {
    return InvalidArgument("a description that cannot be decompressed");
  }
  return description;
}

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
  // Between two descriptions to all of n tasks: n² times as long, but not longer than:
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
