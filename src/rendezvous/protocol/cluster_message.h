// The cluster description as sent to launchers: one compressed binary message, encoded once per
// state of the cluster and shared by all receivers. As JSON text, ten thousand descriptions of ten
// thousand tasks would be gigabytes to write and to parse.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal::rendezvous {

struct ClusterMessage {
  int64_t generation = 0;
  std::string cluster;  // JSON text (docs/formats/cluster.md)
};

// Byte-exact in docs/formats/rendezvous.md; at most kMaxMessageDown bytes of text.
std::string EncodeClusterMessage(int64_t generation, std::string_view cluster);
// InvalidArgument for bytes that EncodeClusterMessage does not produce.
Result<ClusterMessage> DecodeClusterMessage(std::string_view frame);

}  // namespace shoal::rendezvous
