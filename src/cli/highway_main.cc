// The two functions of Highway's library that our kernels call, so that the binary need not load
// the library when it starts.
//
// libhwy.so measures the machine's timer whenever a process loads it: 3 ms of processor time
// (perf, libhwy 1.0.3), a fifth of all that a job of four tasks of `true` costs, since six
// processes start for it. Only trainers compute, so the library is loaded at the first question
// for the processor's abilities.

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
  // Without the library: what every processor that runs this build has.
  return real == nullptr ? int64_t{HWY_STATIC_TARGET} : real();
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
