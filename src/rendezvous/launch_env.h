// The environment that a launcher starts its program with: what the engine gave the launcher, what
// the coordinator says, and what only the launcher knows. Used by attempt.cc.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rendezvous/protocol.h"

namespace shoal::rendezvous {

// What only the launcher knows.
struct LaunchPlace {
  std::string job_dir;
  std::string scratch;
  std::string cluster_file;
  std::string cluster;  // the description's text
};

// As "NAME=value"; the later of the three counts. `process` is what one of several processes has
// over StartMessage::env.
std::vector<std::string> LaunchEnvironment(
    const StartMessage& start, const std::vector<std::pair<std::string, std::string>>& process,
    const LaunchPlace& place);

}  // namespace shoal::rendezvous
