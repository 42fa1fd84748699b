// The environment of a program: the launcher's own environment, then what the coordinator sent,
// then what only the launcher knows. Used by attempt.cc.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {

// Paths and texts that only the launcher knows.
struct AttemptPaths {
  std::string job_dir;
  std::string scratch;
  std::string cluster_file;
  std::string cluster;  // JSON text of the cluster description
  std::string output;   // SHOAL_OUTPUT: its contents are stored by the coordinator
};

// Creates the attempt's directories. RemoveTaskDirectories removes them, but not an `output` that
// has contents.
Status MakeTaskDirectories(const AttemptPaths& paths);
void RemoveTaskDirectories(const AttemptPaths& paths);

// Gives "NAME=value" entries; of several values for a name the later source wins. `process`: the
// variables of one of several processes, on top of StartMessage::env.
std::vector<std::string> LaunchEnvironment(
    const StartMessage& start, const std::vector<std::pair<std::string, std::string>>& process,
    const AttemptPaths& paths);

}  // namespace shoal::rendezvous
