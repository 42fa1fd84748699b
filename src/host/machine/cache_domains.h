// Groups of processors that share a last-level cache. Between processors of different groups,
// access to a cache line that the other has written takes several times as long.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace shoal::host {

// Plain data.
struct CacheDomains {
  uint32_t count = 1;            // number of domains in which this process may run
  std::vector<uint32_t> of_cpu;  // domain of each processor, below count; 0 for unknown ones
  uint32_t Of(int cpu) const {
    const auto at = static_cast<size_t>(cpu);
    return cpu >= 0 && at < of_cpu.size() ? of_cpu[at] : 0;
  }
};

// The domains of the processors in `allowed`. `root` is a directory like /sys/devices/system/cpu.
// Processors without level 3 cache information are assumed to share one.
CacheDomains ReadCacheDomains(const std::filesystem::path& root, const std::vector<int>& allowed);

// The domains of the processors on which this process may run. SHOAL_CACHE_DOMAINS=N in the
// environment simulates N domains for tests: processors are assigned to them round-robin.
CacheDomains FindCacheDomains();

}  // namespace shoal::host
