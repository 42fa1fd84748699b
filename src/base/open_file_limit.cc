#include "base/open_file_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace shoal {
namespace {

// Before the first raise; 0: nothing was raised.
std::atomic<uint64_t> g_first{0};

}  // namespace

uint64_t RaiseOpenFiles() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  const uint64_t soft = files.rlim_cur;
  if (files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    uint64_t none = 0;
    if (::setrlimit(RLIMIT_NOFILE, &files) == 0) g_first.compare_exchange_strong(none, soft);
  }
  const uint64_t first = g_first.load();
  return first == 0 ? soft : first;
}

std::string OpenFilesEntry() {
  const uint64_t first = g_first.load();
  if (first == 0) return "";
  std::string entry = kOpenFilesVariable;
  entry += '=';
  entry += std::to_string(first);
  return entry;
}

void RestoreOpenFiles() {
  const char* text = std::getenv(kOpenFilesVariable);
  if (text == nullptr) return;
  uint64_t soft = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), soft);
  rlimit files{};
  if (error == std::errc() && *end == 0 && soft > 0 && ::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = std::min<rlim_t>(soft, files.rlim_max);
    (void)::setrlimit(RLIMIT_NOFILE, &files);
  }
  (void)::unsetenv(kOpenFilesVariable);
}

}  // namespace shoal
