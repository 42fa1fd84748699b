// Facts about the machine: usable cores, memory, huge pages. See process_usage.h.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/file.h"
#include "host/cgroup/cgroup.h"
#include "host/process/process_usage.h"

namespace shoal::host {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSmallFile = 1 << 20;

std::string ReadText(const fs::path& path) { return ReadFile(path, kSmallFile).value_or(""); }

// The number after "name:" or "name :" in a file of such lines, as text; empty if there is none.
std::string_view LineValue(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view key = line.substr(0, colon);
    key = key.substr(0, key.find_last_not_of(" \t") + 1);
    if (key != name) continue;
    std::string_view value = line.substr(colon + 1);
    size_t begin = value.find_first_not_of(" \t");
    return begin == std::string_view::npos ? std::string_view() : value.substr(begin);
  }
  return {};
}

int64_t Number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double AffinityCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<double>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

// The smallest limit of this process's group and its ancestors. `at`: a directory of a hierarchy.
void ApplyGroupLimits(const CgroupLayout& layout, MachineFacts* facts) {
  constexpr int kDeepest = 64;
  fs::path at = layout.memory;
  for (int depth = 0; depth < kDeepest && at.has_relative_path(); ++depth) {
    const char* file =
        layout.version == CgroupVersion::kV2 ? "memory.max" : "memory.limit_in_bytes";
    int64_t limit = Number(ReadText(at / file));  // "max" reads as 0
    if (limit > 0) facts->memory_bytes = std::min(facts->memory_bytes, limit);
    at = at.parent_path();
  }
  at = layout.cpu;
  for (int depth = 0; depth < kDeepest && at.has_relative_path(); ++depth) {
    int64_t quota = 0;
    int64_t period = 0;
    if (layout.version == CgroupVersion::kV2) {
      std::string text = ReadText(at / "cpu.max");  // "max 100000" or "150000 100000"
      quota = Number(text);
      if (size_t space = text.find(' '); space != std::string::npos)
        period = Number(std::string_view(text).substr(space + 1));
    } else {
      quota = Number(ReadText(at / "cpu.cfs_quota_us"));  // -1: none
      period = Number(ReadText(at / "cpu.cfs_period_us"));
    }
    if (quota > 0 && period > 0)
      facts->cores =
          std::min(facts->cores, static_cast<double>(quota) / static_cast<double>(period));
    at = at.parent_path();
  }
}

// The word in brackets: "always [madvise] never".
std::string Chosen(std::string_view text) {
  size_t open = text.find('[');
  size_t close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return std::string(text.substr(open + 1, close - open - 1));
}

std::string Simd() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return "AVX-512";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "AVX2";
  if (__builtin_cpu_supports("sse4.2")) return "SSE4.2";
  return "SSE2";
#elif defined(__aarch64__)
  return "NEON";
#else
  return "";
#endif
}

}  // namespace

MachineFacts ReadMachineFacts() {
  MachineFacts facts;
  facts.cores = AffinityCores();
  std::string memory = ReadText("/proc/meminfo");
  constexpr int64_t kKibi = 1024;
  facts.memory_bytes = Number(LineValue(memory, "MemTotal")) * kKibi;
  facts.available_bytes = Number(LineValue(memory, "MemAvailable")) * kKibi;
  facts.huge_page_bytes = Number(LineValue(memory, "Hugepagesize")) * kKibi;
  facts.huge_pages_free = Number(LineValue(memory, "HugePages_Free"));
  facts.transparent_huge_pages = Chosen(ReadText("/sys/kernel/mm/transparent_hugepage/enabled"));
  facts.processor = std::string(LineValue(ReadText("/proc/cpuinfo"), "model name"));
  facts.simd = Simd();
  ApplyGroupLimits(OwnCgroups(), &facts);
  facts.available_bytes = std::min(facts.available_bytes, facts.memory_bytes);
  return facts;
}

}  // namespace shoal::host
