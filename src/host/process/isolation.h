// Detects how this machine can isolate a task's process tree and enforce its limits.
//
// A launcher probes once at its start and passes the result to every ProcessTree; `shoal doctor`
// prints Describe(). Tests choose a mode explicitly, so that the fallbacks run on every machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "host/cgroup/cgroup.h"

namespace shoal::host {

// How a task's process tree is contained, best first.
enum class TreeMode : uint8_t {
  kPidNamespace,   // an init in a PID namespace: when it ends, the kernel kills the whole tree
  kUserNamespace,  // the same without privileges, inside a user namespace
  kGuard,          // a subreaper process that adopts orphans and kills remaining processes
};

// "pid-namespace", "user-namespace", "guard".
std::string_view TreeModeName(TreeMode mode);
Result<TreeMode> ParseTreeMode(std::string_view name);

// Copyable. With an empty `cgroups` limits are monitored but not enforced.
struct Isolation {
  TreeMode tree = TreeMode::kGuard;
  CgroupLayout cgroups;
};

// One line of the report for the user, with a remedy if a better mode exists.
struct IsolationFact {
  std::string name;     // "processes", "shm", "memory", "cpu", "kill"
  bool best = true;     // false: a better mode exists
  std::string meaning;  // one sentence
  std::string remedy;   // empty when best
};

// Whether a process tree can be started in this mode, tested with a real child. About 1 ms.
bool TreeModeWorks(TreeMode mode);

// The best modes that work here. $SHOAL_ISOLATION (a TreeMode's name) overrides the tree mode if it
// works. 1–3 ms.
Isolation ProbeIsolation();

std::vector<IsolationFact> Describe(const Isolation& isolation);

}  // namespace shoal::host
