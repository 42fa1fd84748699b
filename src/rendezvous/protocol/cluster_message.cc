#include "rendezvous/protocol/cluster_message.h"

#include <zstd.h>

#include <cstring>

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
  // Checked before the claimed size is allocated.
  if (::ZSTD_getFrameContentSize(packed.data(), packed.size()) != bytes) {
    return InvalidArgument("a description whose length differs from its header");
  }
  description.cluster.resize(bytes);
  const size_t size =
      ::ZSTD_decompress(description.cluster.data(), bytes, packed.data(), packed.size());
  if (::ZSTD_isError(size) != 0 || size != bytes) {
    return InvalidArgument("a description that cannot be decompressed");
  }
  return description;
}

}  // namespace shoal::rendezvous
