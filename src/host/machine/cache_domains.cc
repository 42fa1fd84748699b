#include "host/machine/cache_domains.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "base/file.h"

namespace shoal::host {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSmallFile = 4096;
constexpr int kCaches = 8;  // of a processor, at most
constexpr std::string_view kLastLevel = "3";

std::string Line(const fs::path& path) {
  std::string text = ReadFile(path, kSmallFile).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// The processors that share this one's last-level cache, as the system writes them: "0-7,16-23".
std::string SharersOf(const fs::path& cpu) {
  for (int i = 0; i < kCaches; ++i) {
    const fs::path cache = cpu / "cache" / fmt::format("index{}", i);
    if (Line(cache / "level") == kLastLevel) return Line(cache / "shared_cpu_list");
  }
  return "";
}

std::vector<int> AllowedCpus() {
  std::vector<int> allowed;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) allowed.push_back(cpu);
  }
  return allowed;
}

}  // namespace

CacheDomains ReadCacheDomains(const fs::path& root, const std::vector<int>& allowed) {
  CacheDomains domains;
  std::map<std::string, uint32_t> numbers;
  for (const int cpu : allowed) {
    const std::string sharers = SharersOf(root / fmt::format("cpu{}", cpu));
    const auto number = numbers.emplace(sharers, static_cast<uint32_t>(numbers.size())).first;
    const auto at = static_cast<size_t>(cpu);
    if (domains.of_cpu.size() <= at) domains.of_cpu.resize(at + 1);
    domains.of_cpu[at] = number->second;
  }
  domains.count = std::max<uint32_t>(1, static_cast<uint32_t>(numbers.size()));
  return domains;
}

CacheDomains FindCacheDomains() {
  const std::vector<int> allowed = AllowedCpus();
  CacheDomains domains = ReadCacheDomains("/sys/devices/system/cpu", allowed);
  const char* const said = std::getenv("SHOAL_CACHE_DOMAINS");
  const std::string_view text = said == nullptr ? "" : said;
  uint32_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  if (count == 0) return domains;
  domains.count = count;
  for (size_t i = 0; i < allowed.size(); ++i)
    domains.of_cpu[static_cast<size_t>(allowed[i])] = static_cast<uint32_t>(i) % count;
  return domains;
}

}  // namespace shoal::host
