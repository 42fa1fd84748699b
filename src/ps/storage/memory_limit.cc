#include "ps/storage/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace shoal::ps {
namespace {

constexpr size_t kFileBytes = 64u << 10;

// "max" and what cannot be read are no limit.
uint64_t LimitIn(const std::filesystem::path& file) {
  const auto text = ReadFile(file, kFileBytes);
  uint64_t bytes = 0;
  if (!text.ok()) return UINT64_MAX;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), bytes);
  return error == std::errc() && bytes > 0 ? bytes : UINT64_MAX;
}

// Of the group `path` below `root` and of those above it. In a container the path may be the
// host's: then the root is ours.
uint64_t LimitOfGroups(const std::filesystem::path& root, const std::string& path,
                       const char* file) {
  uint64_t least = LimitIn(root / file);
  std::filesystem::path at = root;
  for (const auto& part : std::filesystem::path(path).relative_path()) {
    at /= part;
    least = std::min(least, LimitIn(at / file));
  }
  return least;
}

uint64_t LimitOfGroups() {
  const auto groups = ReadFile("/proc/self/cgroup", kFileBytes);
  uint64_t least = UINT64_MAX;
  size_t begin = 0;
  while (groups.ok() && begin < groups->size()) {
    // "0::/user.slice", "9:memory:/user.slice"
    const size_t end = std::min(groups->find('\n', begin), groups->size());
    const std::string line = groups->substr(begin, end - begin);
    begin = end + 1;
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,")
      least = std::min(least, LimitOfGroups("/sys/fs/cgroup", path, "memory.max"));
    if (controllers.find(",memory,") != std::string::npos) {
      least =
          std::min(least, LimitOfGroups("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
    }
  }
  return least;
}

}  // namespace

uint64_t MemoryLimit() {
  const auto machine = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(machine, LimitOfGroups());
}

}  // namespace shoal::ps
