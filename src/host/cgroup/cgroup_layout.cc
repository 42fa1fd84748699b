// Finds where control groups can be created: mounts, this process's groups, write permissions.
// See cgroup.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <sstream>

#include "host/cgroup/cgroup.h"

namespace shoal::host {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSmallFile = 1 << 20;

struct Mount {
  fs::path root;   // of the hierarchy, as far as it is mounted
  fs::path point;  // where
  bool v2 = false;
  std::vector<std::string> controllers;  // v1
};

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

fs::path Below(const fs::path& root, const fs::path& absolute) {
  return root / absolute.relative_path();
}

// proc(5): "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:1 - tmpfs tmpfs rw,mode=755"
std::vector<Mount> ReadMounts(const fs::path& root) {
  std::vector<Mount> mounts;
  std::istringstream lines(ReadFile(root / "proc/self/mountinfo", kSmallFile).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> left = Split(line.substr(0, dash), ' ');
    const std::vector<std::string> right = Split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    if (right[0] != "cgroup" && right[0] != "cgroup2") continue;
    mounts.push_back({left[3], left[4], right[0] == "cgroup2", Split(right[2], ',')});
  }
  return mounts;
}

// "4:memory:/a/b" or "0::/a/b" → the group's path by controller; "" for version 2.
std::map<std::string, fs::path> ReadOwn(const fs::path& root) {
  std::map<std::string, fs::path> own;
  std::istringstream lines(ReadFile(root / "proc/self/cgroup", kSmallFile).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    const std::string names = line.substr(first + 1, second - first - 1);
    if (names.empty()) own[""] = path;
    for (const std::string& name : Split(names, ',')) own[name] = path;
  }
  return own;
}

// The directory of this process's group in a mount that may show only a part of the hierarchy.
fs::path DirectoryOf(const Mount& mount, const fs::path& group) {
  const fs::path relative = group.lexically_relative(mount.root);
  if (relative.empty() || *relative.begin() == "..") return mount.point;
  return relative == "." ? mount.point : (mount.point / relative).lexically_normal();
}

bool Contains(const std::string& words, const std::string& word) {
  std::istringstream stream(words);
  for (std::string each; stream >> each;) {
    if (each == word) return true;
  }
  return false;
}

// Version 2 delegates controllers level by level. Unavailable controllers are no error here.
void EnableControllers(const fs::path& group) {
  const std::string have = ReadFile(group / "cgroup.subtree_control", kSmallFile).value_or("");
  for (const char* name : {"memory", "cpu", "pids"}) {
    if (Contains(have, name)) continue;
    auto fd = OpenFile(group / "cgroup.subtree_control", O_WRONLY);
    if (!fd.ok()) return;
    const std::string command = std::string("+") + name;
    if (::write(fd->get(), command.data(), command.size()) < 0) continue;
  }
}

bool HasControllers(const fs::path& group, const char* file) {
  const std::string have = ReadFile(group / file, kSmallFile).value_or("");
  return Contains(have, "memory") || Contains(have, "pids");
}

// Whether groups can be created, entered and (version 2 with controllers) limited below `base`.
bool Usable(const fs::path& base, bool v2, bool need_controllers) {
  if (v2 && need_controllers) {
    EnableControllers(base);
    if (!HasControllers(base, "cgroup.subtree_control")) return false;
  }
  const fs::path probe = base / "shoal";
  const char* entry = v2 ? "cgroup.procs" : "tasks";
  constexpr int kTries = 50;  // other launchers may create and remove it concurrently
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const bool made = ::mkdir(probe.c_str(), 0755) == 0;
    if (!made && errno != EEXIST) return false;
    const bool usable =
        ::access((probe / entry).c_str(), W_OK) == 0 && ::access(probe.c_str(), W_OK | X_OK) == 0;
    const bool vanished = !usable && errno == ENOENT;  // an existing group always has this file
    if (made) ::rmdir(probe.c_str());
    if (!vanished) return usable;
  }
  return false;
}

// This process's group directory or the nearest ancestor below which groups can be created.
fs::path FindBase(const fs::path& root, const Mount& mount, const fs::path& own,
                  bool need_controllers) {
  fs::path at = own;
  for (;;) {
    const fs::path real = Below(root, at);
    if (Usable(real, mount.v2, need_controllers)) return real;
    if (at == mount.point || !at.has_relative_path()) return {};
    at = at.parent_path();
  }
}

struct Hierarchy {
  const Mount* mount = nullptr;
  fs::path own;  // our group's directory
};

Hierarchy FindHierarchy(const std::vector<Mount>& mounts,
                        const std::map<std::string, fs::path>& own, const std::string& controller) {
  for (const Mount& mount : mounts) {
    const bool match =
        controller.empty()
            ? mount.v2
            : !mount.v2 && std::find(mount.controllers.begin(), mount.controllers.end(),
                                     controller) != mount.controllers.end();
    if (!match) continue;
    auto group = own.find(controller);
    return {&mount, DirectoryOf(mount, group == own.end() ? fs::path("/") : group->second)};
  }
  return {};
}

}  // namespace

bool CgroupLayout::any() const { return version != CgroupVersion::kNone || !unified.empty(); }

std::vector<fs::path> CgroupLayout::Bases() const {
  std::vector<fs::path> bases;
  for (const fs::path* path : {&memory, &cpu, &pids, &unified, &freezer}) {
    if (!path->empty() && std::find(bases.begin(), bases.end(), *path) == bases.end())
      bases.push_back(*path);
  }
  return bases;
}

CgroupLayout FindCgroups(const fs::path& root) {
  const std::vector<Mount> mounts = ReadMounts(root);
  const std::map<std::string, fs::path> own = ReadOwn(root);
  CgroupLayout layout;
  const Hierarchy v2 = FindHierarchy(mounts, own, "");
  if (v2.mount != nullptr) {
    if (HasControllers(Below(root, v2.mount->point), "cgroup.controllers")) {
      layout.unified = FindBase(root, *v2.mount, v2.own, true);
      if (!layout.unified.empty()) {
        layout.version = CgroupVersion::kV2;
        layout.memory = layout.cpu = layout.pids = layout.unified;
        return layout;
      }
    }
    layout.unified = FindBase(root, *v2.mount, v2.own, false);
  }
  const auto v1 = [&](const char* controller) {
    const Hierarchy found = FindHierarchy(mounts, own, controller);
    return found.mount == nullptr ? fs::path() : FindBase(root, *found.mount, found.own, false);
  };
  layout.memory = v1("memory");
  layout.cpu = v1("cpu");
  layout.pids = v1("pids");
  if (layout.unified.empty()) layout.freezer = v1("freezer");
  if (!layout.memory.empty() || !layout.cpu.empty() || !layout.pids.empty())
    layout.version = CgroupVersion::kV1;
  return layout;
}

CgroupLayout OwnCgroups(const fs::path& root) {
  const std::vector<Mount> mounts = ReadMounts(root);
  const std::map<std::string, fs::path> own = ReadOwn(root);
  CgroupLayout layout;
  const Hierarchy v2 = FindHierarchy(mounts, own, "");
  if (v2.mount != nullptr && HasControllers(Below(root, v2.mount->point), "cgroup.controllers")) {
    layout.version = CgroupVersion::kV2;
    layout.memory = layout.cpu = layout.pids = layout.unified = Below(root, v2.own);
    return layout;
  }
  const auto v1 = [&](const char* controller) {
    const Hierarchy found = FindHierarchy(mounts, own, controller);
    return found.mount == nullptr ? fs::path() : Below(root, found.own);
  };
  layout.memory = v1("memory");
  layout.cpu = v1("cpu");
  layout.pids = v1("pids");
  if (!layout.memory.empty() || !layout.cpu.empty()) layout.version = CgroupVersion::kV1;
  return layout;
}

}  // namespace shoal::host
