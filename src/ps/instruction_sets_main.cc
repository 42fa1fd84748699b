// Highway's two functions that ask the processor what it can do, instead of its library.
//
// Linked into programs and modules that are released. libhwy.so measures the machine's timer
// whenever a process loads it (3 ms of processor time: perf, libhwy 1.0.3), Debian has it only as a
// shared library, and a machine without it would compute one float at a time.
#include <hwy/targets.h>

namespace hwy {

// As libhwy groups them; a kernel that is chosen here is chosen there too, so that a model does not
// depend on where it was trained.
int64_t SupportedTargets() {
  static const int64_t supported = [] {
    int64_t bits = HWY_STATIC_TARGET;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("ssse3")) bits |= HWY_SSSE3;
    const bool sse4 = __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                      __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
    if (sse4) bits |= HWY_SSE4;
    const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    if (avx2) bits |= HWY_AVX2;
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
      bits |= HWY_AVX3;
#endif
    return bits;
  }();
  return supported;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
