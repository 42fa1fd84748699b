// What mpirun finds in the task that runs it, so that its own line need not change: a hostfile made
// of the job's real workers, and in place of rsh a program that reaches them
// (remote_shell.h, docs/adr/0070). Called by cli/internal/prepare.cc and cli/internal/mpi.cc.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "rendezvous/framework_services/remote_shell.h"

namespace shoal::rendezvous {

struct SlotHost {
  std::string name;
  int slots = 0;  // 1 … 99,999
};
// "worker-0:2 worker-1:2", as the dialects say who has how many ranks; InvalidArgument.
Result<std::vector<SlotHost>> ReadSlots(std::string_view text);

struct MpiLaunchPaths {
  std::filesystem::path scratch;  // the task's: mpi/ is made in it
  std::filesystem::path program;  // absolute, of shoal
  std::string hosts;              // SHOAL_MPI_HOSTS: "worker-0:2 worker-1:2"
};

// Writes mpi/openmpi-hosts, mpi/hydra-hosts and mpi/rsh, which is for MPI's own daemons. Returns
// the variables by which Open MPI (4 and 5), MPICH and Intel MPI find them. InvalidArgument for
// hosts that are none.
Result<std::vector<std::pair<std::string, std::string>>> WriteMpiLaunchFiles(
    const MpiLaunchPaths& paths);

// What rsh would do with these words, "[-x …] HOST COMMAND…": where HOST, a task's name, is in the
// cluster description, and the command as one text. NotFound names the hosts there are.
Result<RemoteCommandSpec> FindMpiHost(const std::vector<std::string>& words,
                                      const std::string& cluster_json);

// The environment of what rsh starts on this task, from its own: "NAME=value".
std::vector<std::string> MpiDaemonEnvironment(const char* const* environment);

}  // namespace shoal::rendezvous
