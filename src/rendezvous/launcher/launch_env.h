// The environment that a launcher starts its program with: what the engine gave the launcher, what
// the coordinator says, and what only the launcher knows. Used by attempt.cc.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {

// What only the launcher knows.
struct AttemptPaths {
  std::string job_dir;
  std::string scratch;
  std::string cluster_file;
  std::string cluster;  // the description's text
  std::string output;   // what it writes here comes back, where the job names no directory for it
};

// Makes the attempt's own directories. Removed with it, but for an `output` that is not empty.
Status MakeTaskDirectories(const AttemptPaths& paths);
void RemoveTaskDirectories(const AttemptPaths& paths);

// As "NAME=value"; the later of the three counts. `process` is what one of several processes has
// over StartMessage::env.
std::vector<std::string> LaunchEnvironment(
    const StartMessage& start, const std::vector<std::pair<std::string, std::string>>& process,
    const AttemptPaths& paths);

}  // namespace shoal::rendezvous
