// The directories and files of one attempt on its host. Used by attempt.cc.
#pragma once

#include <string>

#include "base/status.h"

namespace shoal::rendezvous {

// Paths and texts that only the launcher knows.
struct AttemptPaths {
  std::string job_dir;
  std::string scratch;
  std::string cluster_file;
  std::string cluster;  // JSON text of the cluster description
  std::string output;   // SHOAL_OUTPUT: the coordinator stores its contents; empty: none

  // Files with the values of secrets; made for a task that has some.
  std::string secrets() const { return cluster_file + ".secrets"; }
};

// Creates the scratch and output directories, with mode 0700.
Status MakeTaskDirectories(const AttemptPaths& paths);
// Removes scratch directory, cluster file and files of secrets, and an `output` without contents.
void RemoveTaskDirectories(const AttemptPaths& paths);

}  // namespace shoal::rendezvous
