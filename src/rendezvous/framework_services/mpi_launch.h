// Files and variables by which an unchanged mpirun command line finds the job's workers: a
// hostfile, and a replacement of rsh that reaches them through their tasks (remote_shell.h,
// docs/adr/0070). Called by the commands `shoal prepare` and `shoal mpi-agent`.
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
// Parses "worker-0:2 worker-1:2", tasks with their numbers of ranks; InvalidArgument.
Result<std::vector<SlotHost>> ReadSlots(std::string_view text);

struct MpiLaunchPaths {
  std::filesystem::path scratch;  // the task's: mpi/ is made in it
  std::filesystem::path program;  // absolute, of shoal
  std::string hosts;              // SHOAL_MPI_HOSTS: "worker-0:2 worker-1:2"
};

// Writes mpi/openmpi-hosts, mpi/hydra-hosts and mpi/rsh, which MPI's daemons use, and mpi/bin/ssh,
// which scripts of the launcher may put before the machine's own. Returns the variables by which
// Open MPI (4 and 5), MPICH and Intel MPI find them, and those for scripts: SHOAL_MPI_HOSTFILE,
// SHOAL_MPI_HYDRA_HOSTFILE and SHOAL_MPI_BIN. InvalidArgument for malformed hosts.
Result<std::vector<std::pair<std::string, std::string>>> WriteMpiLaunchFiles(
    const MpiLaunchPaths& paths);

// HOST of such a command line as FindMpiHost reads, without its user; empty if there is none.
std::string HostOfRshLine(const std::vector<std::string>& words);

// Resolves a command line of rsh or OpenSSH's ssh, "[OPTION…] [USER@]HOST [OPTION…] COMMAND…": the
// address of HOST, a task's name, in the cluster description, and the command as one text. Options
// have no effect. NotFound lists the known hosts.
Result<RemoteCommandSpec> FindMpiHost(const std::vector<std::string>& words,
                                      const std::string& cluster_json);

// The first program `name` in the directories of `path`, as in $PATH, except in `without`; empty if
// there is none.
std::filesystem::path FindOtherProgram(const std::string& name, std::string_view path,
                                       const std::filesystem::path& without);

// The environment of commands that rsh starts in this task, made of its own: "NAME=value".
std::vector<std::string> MpiDaemonEnvironment(const char* const* environment);

}  // namespace shoal::rendezvous
