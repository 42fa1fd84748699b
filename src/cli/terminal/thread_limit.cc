#include "cli/terminal/thread_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace shoal::cli {
namespace {

constexpr uint64_t kUsualStack = 8 << 20;

// The beginning of a small file, with a NUL; empty if it cannot be read.
template <size_t kSize>
void ReadStart(const char* path, std::array<char, kSize>* text) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? 0 : ::read(fd, text->data(), text->size() - 1);
  if (fd >= 0) ::close(fd);
  (*text)[static_cast<size_t>(std::max<ssize_t>(got, 0))] = '\0';
}

uint64_t SoftLimit(__rlimit_resource resource) {
  rlimit now{};
  if (::getrlimit(resource, &now) != 0 || now.rlim_cur == RLIM_INFINITY) return kNoLimit;
  return now.rlim_cur;
}

// A number in a file; `otherwise` for another text ("max") and without the file.
uint64_t NumberIn(const char* directory, const char* name, uint64_t otherwise) {
  std::array<char, 1024> path{};
  std::array<char, 32> text{};
  const int size = std::snprintf(path.data(), path.size(), "%s/%s", directory, name);
  if (size < 0 || static_cast<size_t>(size) >= path.size()) return otherwise;
  ReadStart(path.data(), &text);
  char* end = nullptr;
  const uint64_t number = std::strtoull(text.data(), &end, 10);
  return end == text.data() ? otherwise : number;
}

// Takes the group `directory` if it has less room than those before.
void TakeGroup(const char* directory, ThreadLimits* limits) {
  const uint64_t most = NumberIn(directory, "pids.max", kNoLimit);
  const uint64_t used = NumberIn(directory, "pids.current", 0);
  if (most == kNoLimit) return;
  const bool fuller = limits->group_limit == kNoLimit ||
                      static_cast<int64_t>(most - used) <
                          static_cast<int64_t>(limits->group_limit - limits->group_used);
  if (!fuller) return;
  limits->group_limit = most;
  limits->group_used = used;
}

// Of the group at `path` below `root` and those above it.
void TakeGroups(const char* root, const char* path, ThreadLimits* limits) {
  std::array<char, 960> directory{};
  const int size = std::snprintf(directory.data(), directory.size(), "%s%s", root, path);
  if (size < 0 || static_cast<size_t>(size) >= directory.size()) return;
  while (std::strlen(directory.data()) >= std::strlen(root)) {
    TakeGroup(directory.data(), limits);
    char* const slash = std::strrchr(directory.data(), '/');
    if (slash == nullptr) return;
    *slash = '\0';
  }
}

void ReadGroups(ThreadLimits* limits) {
  std::array<char, 4096> groups{};
  ReadStart("/proc/self/cgroup", &groups);
  for (char* line = groups.data(); *line != '\0';) {
    char* const end = line + std::strcspn(line, "\n");
    const bool last = *end == '\0';
    *end = '\0';
    const char* const path = std::strchr(line, '/');
    if (path != nullptr && std::strncmp(line, "0::", 3) == 0)
      TakeGroups("/sys/fs/cgroup", path, limits);
    if (path != nullptr && std::strstr(line, ":pids:") != nullptr)
      TakeGroups("/sys/fs/cgroup/pids", path, limits);
    line = last ? end : end + 1;
  }
}

}  // namespace

ThreadLimits ReadThreadLimits() {
  ThreadLimits limits;
  limits.address_limit = SoftLimit(RLIMIT_AS);
  limits.address_used =
      NumberIn("/proc/self", "statm", 0) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t stack = SoftLimit(RLIMIT_STACK);
  limits.stack = stack == kNoLimit ? kUsualStack : stack;
  ReadGroups(&limits);
  if (::getuid() != 0) limits.user_limit = SoftLimit(RLIMIT_NPROC);
  return limits;
}

void DescribeThreadLimit(const ThreadLimits& limits, std::span<char> to) {
  using Number = unsigned long long;
  if (limits.address_limit != kNoLimit &&
      limits.address_used + limits.stack > limits.address_limit) {
    (void)std::snprintf(to.data(), to.size(),
                        "its memory would be more than `ulimit -v` allows, which is %llu KiB; "
                        "raise it",
                        Number{limits.address_limit >> 10});
  } else if (limits.group_limit != kNoLimit && limits.group_used >= limits.group_limit) {
    (void)std::snprintf(to.data(), to.size(),
                        "its control group has the %llu processes and threads that pids.max "
                        "allows; raise it",
                        Number{limits.group_limit});
  } else if (limits.user_limit != kNoLimit) {
    (void)std::snprintf(to.data(), to.size(),
                        "its user may have %llu processes and threads; end some, or raise "
                        "`ulimit -u`",
                        Number{limits.user_limit});
  } else {
    (void)std::snprintf(to.data(), to.size(),
                        "the machine may lack memory or have the most threads that it allows; "
                        "end other processes, or raise the sysctl kernel.threads-max");
  }
}

}  // namespace shoal::cli
