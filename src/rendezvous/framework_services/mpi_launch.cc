#include "rendezvous/framework_services/mpi_launch.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/file.h"
#include "base/json.h"
#include "framework/cluster.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;

// 'it'"'"'s' for a shell.
std::string Quoted(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

bool IsHost(std::string_view name) {
  return !name.empty() && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

Result<std::vector<SlotHost>> ReadSlots(std::string_view text) {
  std::vector<SlotHost> hosts;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::string_view name = word.substr(0, word.find(':'));
    const std::string slots(word.substr(std::min(name.size() + 1, word.size())));
    const bool counted = !slots.empty() && slots.size() < 6 && slots[0] != '0' &&
                         slots.find_first_not_of("0123456789") == std::string::npos;
    if (!IsHost(name) || !counted)
      return InvalidArgument("got the host '" + std::string(word) + "', expected NAME:SLOTS");
    hosts.push_back({std::string(name), std::stoi(slots)});
  }
  if (hosts.empty()) return InvalidArgument("got no host, expected NAME:SLOTS …");
  return hosts;
}

Result<std::vector<std::pair<std::string, std::string>>> WriteMpiLaunchFiles(
    const MpiLaunchPaths& paths) {
  TRY_ASSIGN(const std::vector<SlotHost> hosts, ReadSlots(paths.hosts));
  std::string open, hydra;
  for (const SlotHost& host : hosts) {
    const std::string slots = std::to_string(host.slots);
    open.append(host.name).append(" slots=").append(slots) += '\n';
    hydra.append(host.name).append(":").append(slots) += '\n';
  }
  const fs::path directory = paths.scratch / "mpi";
  TRY(MakeDirectories(directory, 0700));
  const fs::path open_hosts = directory / "openmpi-hosts";
  const fs::path hydra_hosts = directory / "hydra-hosts";
  const fs::path rsh = directory / "rsh";
  TRY(WriteFileAtomically(open_hosts, open, 0600, false));
  TRY(WriteFileAtomically(hydra_hosts, hydra, 0600, false));
  const std::string script =
      "#!/bin/sh\nexec " + Quoted(paths.program.string()) + " mpi-agent -- \"$@\"\n";
  TRY(WriteFileAtomically(rsh, script, 0700, false));
  return std::vector<std::pair<std::string, std::string>>{
      {"OMPI_MCA_plm_rsh_agent", rsh.string()},
      {"OMPI_MCA_orte_default_hostfile", open_hosts.string()},
      {"PRTE_MCA_plm_ssh_agent", rsh.string()},
      {"PRTE_MCA_prte_default_hostfile", open_hosts.string()},
      {"HYDRA_LAUNCHER_EXEC", rsh.string()},
      {"HYDRA_HOST_FILE", hydra_hosts.string()},
      {"I_MPI_HYDRA_BOOTSTRAP_EXEC", rsh.string()},
      {"I_MPI_HYDRA_HOST_FILE", hydra_hosts.string()},
  };
}

Result<RemoteCommandSpec> FindMpiHost(const std::vector<std::string>& words,
                                      const std::string& cluster_json) {
  size_t at = 0;
  while (at < words.size() && words[at].starts_with('-')) ++at;
  if (at + 1 >= words.size())
    return InvalidArgument("got no host and command, expected [-x …] HOST COMMAND…");
  RemoteCommandSpec found;
  found.name = words[at].substr(words[at].find('@') + 1);
  for (++at; at < words.size(); ++at) {
    if (!found.command.empty()) found.command += ' ';
    found.command += words[at];
  }
  TRY_ASSIGN(const json::object object, ParseJsonObject(cluster_json));
  TRY_ASSIGN(const framework::ClusterDescription cluster, framework::ClusterFromJson(object));
  std::string known;
  for (const framework::ClusterRole& role : cluster.roles) {
    const auto port = std::find(role.port_names.begin(), role.port_names.end(), "mpi");
    if (port == role.port_names.end()) continue;
    const size_t number = static_cast<size_t>(port - role.port_names.begin());
    for (size_t i = 0; i < role.members.size(); ++i) {
      const framework::ClusterMember& member = role.members[i];
      if (member.host.empty() || number >= member.ports.size()) continue;
      const std::string name = role.name + "-" + std::to_string(i);
      if (name != found.name) {
        if (known.size() < 200) known += (known.empty() ? "" : ", ") + name;
        continue;
      }
      found.host = member.host;
      found.port = member.ports[number];
      return found;
    }
  }
  return NotFound("mpirun asks for the host '" + found.name +
                  "', which is not a task of this job that runs ranks, expected one of " + known +
                  "; leave out -H and --hostfile to use them all");
}

std::vector<std::string> MpiDaemonEnvironment(const char* const* environment) {
  // Variables of the daemon's own task, which must not reach the ranks that it starts. Ranks of
  // several workers on one machine number their shared memory alike, so each worker's is in its own
  // directory.
  constexpr std::string_view kDropped[] = {
      "SHOAL_LOCAL_RANK=", "SHOAL_LOCAL_SIZE=", "SHOAL_REPORT_FD="};
  constexpr std::string_view kBacking[] = {"OMPI_MCA_btl_vader_backing_directory=",
                                           "OMPI_MCA_btl_sm_backing_directory="};
  std::vector<std::string> env;
  std::string scratch;
  for (; *environment != nullptr; ++environment) {
    const std::string_view one(*environment);
    const auto begins = [one](std::string_view name) { return one.starts_with(name); };
    if (begins("SHOAL_SCRATCH=")) scratch = one.substr(one.find('=') + 1);
    if (std::any_of(std::begin(kDropped), std::end(kDropped), begins)) continue;
    env.emplace_back(one);
  }
  for (const std::string_view name : kBacking) {
    const bool own = std::any_of(env.begin(), env.end(),
                                 [name](const std::string& one) { return one.starts_with(name); });
    if (!own && !scratch.empty()) env.push_back(std::string(name) + scratch);
  }
  return env;
}

}  // namespace shoal::rendezvous
