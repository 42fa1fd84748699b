// What this machine lets us do to hold a task's processes together and within their limits.
//
// A launcher probes once at its start and hands the result to every ProcessTree; `shoal doctor`
// prints Describe(). Tests choose a mode explicitly, so that the fall-backs run on every machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "host/cgroup/cgroup.h"

namespace shoal::host {

// How a task's processes are held together, best first.
enum class TreeMode : uint8_t {
  kPidNamespace,   // an init of ours in a PID namespace: when it dies, the kernel ends all the rest
  kUserNamespace,  // the same without privileges, inside a user namespace
  kGuard,          // a guard process that adopts orphans (subreaper) and kills what is left
};

// "pid-namespace", "user-namespace", "guard".
std::string_view TreeModeName(TreeMode mode);
Result<TreeMode> ParseTreeMode(std::string_view name);

// Copyable. An empty `cgroups` means that limits are not enforced, only watched.
struct Isolation {
  TreeMode tree = TreeMode::kGuard;
  CgroupLayout cgroups;
};

// One fact for people, with the remedy if it is not as good as it could be.
struct IsolationFact {
  std::string name;     // "processes", "shm", "memory", "cpu", "kill"
  bool best = true;     // false: something better exists
  std::string meaning;  // one sentence
  std::string remedy;   // empty when best
};

// True if a process tree can be started this way, tried with a real child. About 1 ms.
bool TreeModeWorks(TreeMode mode);

// The best that works here. $SHOAL_ISOLATION (a TreeMode's name) overrides the tree mode if it
// works. 1–3 ms.
Isolation ProbeIsolation();

std::vector<IsolationFact> Describe(const Isolation& isolation);

}  // namespace shoal::host
