#include "framework/mpi_environment.h"

#include <set>
#include <utility>

#include "framework/ranks.h"

namespace shoal::framework {
namespace {

using Pair = std::pair<const char*, const char*>;

// mpirun starts all of its daemons by rsh, directly and not as a tree, and the daemons stay
// attached to their rsh, so that the end of one is the end of the other. HYDRA_ENV: ranks keep the
// environment of their worker, for example its GPUs; by default MPICH replaces it by the
// launcher's.
constexpr Pair kReach[] = {
    {"OMPI_MCA_plm", "rsh"},
    {"OMPI_MCA_plm_rsh_no_tree_spawn", "1"},
    {"OMPI_MCA_orte_leave_session_attached", "1"},
    {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    {"PRTE_MCA_plm", "ssh"},
    {"PRTE_MCA_plm_ssh_no_tree_spawn", "1"},
    {"PRTE_MCA_prte_leave_session_attached", "1"},
    {"PRTE_ALLOW_RUN_AS_ROOT", "1"},
    {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    {"HYDRA_LAUNCHER", "ssh"},
    {"HYDRA_ENV", "none"},
    {"I_MPI_HYDRA_BOOTSTRAP", "ssh"},
};

// For several workers on one machine. Each daemon numbers the machine's cores from 0 and assumes
// exclusive use: with core binding the first ranks of all workers would share a core.
constexpr Pair kShared[] = {
    {"OMPI_MCA_hwloc_base_binding_policy", "none"},
    {"OMPI_MCA_mpi_yield_when_idle", "1"},
    {"PRTE_MCA_hwloc_default_binding_policy", "none"},
    {"I_MPI_PIN", "off"},
};

// A job on one machine listens on the loopback interface only.
constexpr Pair kLoopback[] = {
    {"OMPI_MCA_oob_tcp_if_include", "127.0.0.0/8"},
    {"OMPI_MCA_btl_tcp_if_include", "127.0.0.0/8"},
    {"HYDRA_IFACE", "lo"},
    {"I_MPI_HYDRA_IFACE", "lo"},
};
constexpr Pair kLoopbackRank[] = {{"UCX_NET_DEVICES", "lo"}, {"FI_TCP_IFACE", "lo"}};

template <size_t n>
void AddDefaults(const Pair (&defaults)[n], Environment* env) {
  for (const auto& [name, value] : defaults) env->try_emplace(name, value);
}

bool SharesHosts(const ClusterRole& workers) {
  std::set<std::string> seen;
  for (const ClusterMember& member : workers.members) {
    if (!member.host.empty() && !seen.insert(member.host).second) return true;
  }
  return false;
}

}  // namespace

Status MpiEnvironment::AddVariables(const job::Job& job, const ClusterDescription& cluster,
                                    const TaskContext& task, Environment* env) const {
  const ClusterRole* workers = cluster.FindRole("worker");
  if (workers == nullptr) return InvalidArgument("framework mpi needs a role worker");
  if (task.role == "worker") {
    const ClusterMember& self = workers->members[static_cast<size_t>(task.index)];
    (*env)["SHOAL_MPI_HOST"] = IsLoopback(self.host) ? self.host : "0.0.0.0";
    if (AllOnLoopback(cluster)) AddDefaults(kLoopbackRank, env);
    return Status::Ok();
  }
  if (task.role != "launcher") return Status::Ok();
  (*env)["SHOAL_MPI_HOSTS"] = FormatSlots(job, cluster, {"worker"});
  AddDefaults(kReach, env);
  if (SharesHosts(*workers)) AddDefaults(kShared, env);
  if (AllOnLoopback(cluster)) AddDefaults(kLoopback, env);
  return Status::Ok();
}

}  // namespace shoal::framework
