#include "rendezvous/framework_services/mpi_launch.h"

#include <unistd.h>

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

// Options of ssh that have a value, in the same word or in the next.
constexpr std::string_view kSshValues = "BbcDEeFIiJLlmOoPpQRSWw";

// The number of the first word at or after `at` that belongs to no option.
size_t SkipOptions(const std::vector<std::string>& words, size_t at) {
  for (; at < words.size() && words[at].size() > 1 && words[at][0] == '-'; ++at) {
    if (words[at] == "--") return at + 1;
    const size_t letter = words[at].find_first_of(kSshValues, 1);
    if (letter != std::string::npos && letter + 1 == words[at].size()) ++at;
  }
  return std::min(at, words.size());
}

Status WriteScript(const fs::path& path, const MpiLaunchPaths& paths, const std::string& options) {
  return WriteFileAtomically(
      path,
      "#!/bin/sh\nexec " + Quoted(paths.program.string()) + " mpi-agent" + options + " -- \"$@\"\n",
      0700, false);
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
  TRY(WriteScript(rsh, paths, ""));
  TRY(MakeDirectories(directory / "bin", 0700));
  TRY(WriteScript(directory / "bin" / "ssh", paths, " --ssh"));
  return std::vector<std::pair<std::string, std::string>>{
      {"OMPI_MCA_plm_rsh_agent", rsh.string()},
      {"OMPI_MCA_orte_default_hostfile", open_hosts.string()},
      {"PRTE_MCA_plm_ssh_agent", rsh.string()},
      {"PRTE_MCA_prte_default_hostfile", open_hosts.string()},
      {"HYDRA_LAUNCHER_EXEC", rsh.string()},
      {"HYDRA_HOST_FILE", hydra_hosts.string()},
      {"I_MPI_HYDRA_BOOTSTRAP_EXEC", rsh.string()},
      {"I_MPI_HYDRA_HOST_FILE", hydra_hosts.string()},
      {"SHOAL_MPI_HOSTFILE", open_hosts.string()},
      {"SHOAL_MPI_HYDRA_HOSTFILE", hydra_hosts.string()},
      {"SHOAL_MPI_BIN", (directory / "bin").string()},
  };
}

std::string HostOfRshLine(const std::vector<std::string>& words) {
  const size_t at = SkipOptions(words, 0);
  return at < words.size() ? words[at].substr(words[at].find('@') + 1) : "";
}

Result<RemoteCommandSpec> FindMpiHost(const std::vector<std::string>& words,
                                      const std::string& cluster_json) {
  RemoteCommandSpec found;
  found.name = HostOfRshLine(words);
  if (found.name.empty())
    return InvalidArgument("got no host and command, expected [-x …] HOST COMMAND…");
  for (size_t at = SkipOptions(words, SkipOptions(words, 0) + 1); at < words.size(); ++at) {
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
      if (found.command.empty())
        return InvalidArgument("got no command for " + name + ", expected [-x …] HOST COMMAND…");
      found.host = member.host;
      found.port = member.ports[number];
      return found;
    }
  }
  return NotFound("mpirun asks for the host '" + found.name +
                  "', which is not a task of this job that runs ranks, expected one of " + known +
                  "; leave out -H and --hostfile to use them all");
}

fs::path FindOtherProgram(const std::string& name, std::string_view path, const fs::path& without) {
  while (!path.empty()) {
    const std::string_view entry = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(entry.size() + 1, path.size()));
    const fs::path directory(entry);
    std::error_code error;
    if (entry.empty() || fs::equivalent(directory, without, error)) continue;
    fs::path program = directory / name;
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
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
