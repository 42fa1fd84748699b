#include "base/stack.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <system_error>
#include <thread>

namespace shoal {
namespace {

constexpr size_t kStackBytes = size_t{8} << 20;

// The kernel extends the main thread's stack up to the limit; glibc takes the same size for others.
bool HasSmallStack() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0) return false;
  return limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < kStackBytes;
}

}  // namespace

int RunWithStack(const std::function<int()>& run) {
  if (!HasSmallStack()) return run();
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return run();
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
  // This thread handles no signal: one that `run` blocks to read it must not be delivered here.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = 0;
  try {
    std::thread([&] {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      code = run();
    }).join();
  } catch (const std::system_error&) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return run();
  }
  return code;
}

}  // namespace shoal
