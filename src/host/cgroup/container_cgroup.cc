#include "host/cgroup/container_cgroup.h"

#include <charconv>
#include <cstdlib>
#include <string>

#include "base/file.h"

namespace shoal::host {

int64_t TaskCgroupOomKills() {
  constexpr size_t kMost = 4096;
  const char* own = std::getenv(kTaskCgroupVariable);
  if (own == nullptr || *own == '\0') return 0;
  // A container's group is mounted as the root of its hierarchy: version 2, then version 1.
  for (const char* path :
       {"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}) {
    const auto text = ReadFile(path, kMost);
    if (!text.ok()) continue;
    constexpr std::string_view kKey = "oom_kill ";
    size_t at = text->starts_with(kKey) ? 0 : text->find("\n" + std::string(kKey));
    if (at == std::string::npos) continue;
    at += kKey.size() + ((*text)[at] == '\n' ? 1 : 0);
    int64_t kills = 0;
    (void)std::from_chars(text->data() + at, text->data() + text->size(), kills);
    return kills;
  }
  return 0;
}

}  // namespace shoal::host
