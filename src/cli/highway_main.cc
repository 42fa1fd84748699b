// The two functions of libhwy that the kernels call, so that the binary does not load the library
// at start.
//
// libhwy.so calibrates the timer whenever a process loads it: 3 ms of processor time (perf, libhwy
// 1.0.3), a fifth of the cost of a job of four tasks of `true`, which starts six processes. Only
// trainers compute, so the library is loaded at the first query for the processor's abilities.

#include <dlfcn.h>
#include <hwy/targets.h>

namespace hwy {

int64_t SupportedTargets() {
  using Function = int64_t (*)();
  static const Function real = [] {
    void* const library = dlopen("libhwy.so.1", RTLD_NOW | RTLD_LOCAL);
    void* const symbol =
        library == nullptr ? nullptr : dlsym(library, "_ZN3hwy16SupportedTargetsEv");
    return reinterpret_cast<Function>(symbol);
  }();
  // Fallback without the library: the baseline of this build.
  return real == nullptr ? int64_t{HWY_STATIC_TARGET} : real();
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
