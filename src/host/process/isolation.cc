// Probes what this machine permits, and describes it. See isolation.h.
#include "host/process/isolation.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/log.h"
#include "host/process/tree_init.h"

namespace shoal::host {
namespace {

IsolationFact ProcessFact(TreeMode mode) {
  switch (mode) {
    case TreeMode::kPidNamespace:
      return {"processes", true,
              "each task runs in a PID namespace: when it ends or its launcher dies, the kernel "
              "ends everything it started",
              ""};
    case TreeMode::kUserNamespace:
      return {"processes", true,
              "each task runs in an unprivileged user and PID namespace: when it ends or its "
              "launcher dies, the kernel ends everything it started; programs that change their "
              "user (sudo) do not work in it",
              ""};
    case TreeMode::kGuard:
      break;
  }
  return {"processes", false,
          "each task has a guard process that kills what it leaves behind; a guard that is itself "
          "killed with -9 can leave processes to the end of the job",
          "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
          "kernel.apparmor_restrict_unprivileged_userns=0; in a container: --security-opt "
          "seccomp=unconfined --security-opt systempaths=unconfined) or run as root"};
}

const char* Remedy() {
  return "run under `systemd-run --user --scope -p Delegate=yes`, or as root; in a container, "
         "mount /sys/fs/cgroup writable";
}

std::string VersionText(CgroupVersion version) {
  return version == CgroupVersion::kV2 ? "cgroup version 2" : "cgroup version 1";
}

}  // namespace

std::string_view TreeModeName(TreeMode mode) {
  switch (mode) {
    case TreeMode::kPidNamespace:
      return "pid-namespace";
    case TreeMode::kUserNamespace:
      return "user-namespace";
    case TreeMode::kGuard:
      break;
  }
  return "guard";
}

Result<TreeMode> ParseTreeMode(std::string_view name) {
  for (TreeMode mode : {TreeMode::kPidNamespace, TreeMode::kUserNamespace, TreeMode::kGuard}) {
    if (name == TreeModeName(mode)) return mode;
  }
  return InvalidArgument("isolation: got \"" + std::string(name) +
                         "\", expected pid-namespace, user-namespace or guard");
}

bool TreeModeWorks(TreeMode mode) {
  if (mode == TreeMode::kGuard) return true;
  InitPlan plan;
  plan.new_pids = true;
  const std::string uid_map =
      std::to_string(::geteuid()) + " " + std::to_string(::geteuid()) + " 1";
  const std::string gid_map =
      std::to_string(::getegid()) + " " + std::to_string(::getegid()) + " 1";
  const bool user = mode == TreeMode::kUserNamespace;
  if (user) {
    plan.uid_map = uid_map.c_str();
    plan.gid_map = gid_map.c_str();
  }
  const pid_t pid = CloneProcess(NamespaceFlags(true, user), 0, nullptr, -1);
  if (pid == 0) ::_exit(EnterNamespaces(plan) == StartStep::kNone ? 0 : 1);
  if (pid < 0) return false;
  int status = 0;
  while (::waitpid(pid, &status, __WALL) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Isolation ProbeIsolation() {
  Isolation isolation;
  isolation.cgroups = FindCgroups();
  if (const char* wish = std::getenv("SHOAL_ISOLATION"); wish != nullptr && *wish != '\0') {
    auto mode = ParseTreeMode(wish);
    if (mode.ok() && TreeModeWorks(*mode)) {
      isolation.tree = *mode;
      return isolation;
    }
    LogWarning("SHOAL_ISOLATION={}: {}; choosing what works", wish,
               mode.ok() ? "does not work on this machine" : mode.status().message());
  }
  for (TreeMode mode : {TreeMode::kPidNamespace, TreeMode::kUserNamespace}) {
    if (!TreeModeWorks(mode)) continue;
    isolation.tree = mode;
    break;
  }
  return isolation;
}

std::vector<IsolationFact> Describe(const Isolation& isolation) {
  const CgroupLayout& groups = isolation.cgroups;
  std::vector<IsolationFact> facts{ProcessFact(isolation.tree)};
  if (isolation.tree != TreeMode::kGuard) {
    facts.push_back({"shm", true,
                     "each job has its own /dev/shm, removed with its last task; System V shared "
                     "memory is removed with the task that created it",
                     ""});
  } else {
    facts.push_back(
        {"shm", false,
         "tasks use the machine's /dev/shm; files and System V shared memory that their "
         "programs leave are not removed",
         "permit PID namespaces (see processes), or remove them by hand (rm, ipcrm)"});
  }
  const std::string version = VersionText(groups.version);
  if (!groups.memory.empty()) {
    facts.push_back({"memory", true,
                     "memory limits are enforced by " + version +
                         "; a task that exceeds its limit is killed and reported as out of memory",
                     ""});
  } else {
    facts.push_back({"memory", false,
                     "no control group for memory: limits are checked about once a second; a task "
                     "that grows faster can exhaust the machine's memory first",
                     Remedy()});
  }
  if (!groups.cpu.empty()) {
    facts.push_back({"cpu", true, "processor limits are enforced by " + version, ""});
  } else {
    facts.push_back({"cpu", false,
                     "no control group for processors: a task may use more cores than it asked for",
                     Remedy()});
  }
  if (isolation.tree == TreeMode::kGuard && groups.unified.empty() && groups.freezer.empty()) {
    facts.push_back(
        {"kill", false,
         "no control group to kill a task's processes at once: its guard kills them one "
         "by one",
         Remedy()});
  } else {
    facts.push_back({"kill", true,
                     groups.unified.empty() ? "a task's processes are killed together"
                                            : "a task's processes are killed together by "
                                              "cgroup.kill and their namespace",
                     ""});
  }
  return facts;
}

}  // namespace shoal::host
