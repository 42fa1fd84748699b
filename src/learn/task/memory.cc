#include "learn/task/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "base/file.h"
#include "host/process/process_usage.h"

namespace shoal::learn {
namespace {

constexpr size_t kMostStatm = 4096;

// In MiB below a GiB, else in GiB, one decimal.
std::string Size(uint64_t bytes) {
  constexpr double kMebi = 1 << 20;
  const double mebi = static_cast<double>(bytes) / kMebi;
  return mebi < 1024 ? fmt::format("{:.1f} MiB", mebi) : fmt::format("{:.1f} GiB", mebi / 1024);
}

uint64_t MappedBytes() {
  const Result<std::string> text = ReadFile("/proc/self/statm", kMostStatm);
  uint64_t pages = 0;
  if (text.ok()) std::from_chars(text->data(), text->data() + text->size(), pages);
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

uint64_t FreeMemory() {
  return static_cast<uint64_t>(std::max<int64_t>(host::ReadMachineFacts().available_bytes, 0));
}

uint64_t FreeAddressSpace() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  const uint64_t most = limit.rlim_cur;
  return most - std::min(most, MappedBytes());
}

Status CheckMemory(uint64_t bytes, uint64_t free, std::string_view advice) {
  if (bytes <= free) return Status::Ok();
  return ResourceExhausted(
      fmt::format("the model takes about {} of this worker's memory, expected at most the {} that "
                  "are free; {}, or give the worker more memory",
                  Size(bytes), Size(free), advice));
}

Status OutOfMemory() {
  return ResourceExhausted(
      "there is no more memory; make the model smaller, or give the worker more memory");
}

}  // namespace shoal::learn
