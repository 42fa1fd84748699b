// Which of the machine's processors share a last-level cache. Threads on processors that do not
// wait several times as long for a line that the other has written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace shoal::host {

// Plain data.
struct CacheDomains {
  uint32_t count = 1;            // of those that this process may run in
  std::vector<uint32_t> of_cpu;  // of each processor, below count; 0 for one that is not here
  uint32_t Of(int cpu) const {
    const auto at = static_cast<size_t>(cpu);
    return cpu >= 0 && at < of_cpu.size() ? of_cpu[at] : 0;
  }
};

// Of the processors in `allowed`. `root` is a directory as /sys/devices/system/cpu. Processors of
// which the system does not tell a cache of level 3 are taken to share one.
CacheDomains ReadCacheDomains(const std::filesystem::path& root, const std::vector<int>& allowed);

// Of the processors that this process may run on. SHOAL_CACHE_DOMAINS=N in the environment says N
// in place of what the machine has, for tests: processors are dealt out to them in turn.
CacheDomains FindCacheDomains();

}  // namespace shoal::host
