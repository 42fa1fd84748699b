// The code around the functions of every kernels.cc, which Highway compiles once for each
// instruction set: the table of each target, the tables that this machine can run, and the choice
// among them. Include it after Highway's headers, in a file that disables targets without a table.
#pragma once

#include <hwy/highway.h>

#include <cstdint>

#include "learn/simd/kernel_choice.h"

// True if the current target gets a table.
#define SHOAL_TARGET_HAS_KERNELS \
  (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4)

// Defines Table() in the current HWY_NAMESPACE: the target's name, and the given functions in the
// order of the algorithm's Kernels.
#define SHOAL_DEFINE_KERNEL_TABLE(...)                                        \
  const Kernels* Table() {                                                    \
    static constexpr Kernels table = {NameOfTarget(HWY_TARGET), __VA_ARGS__}; \
    return &table;                                                            \
  }                                                                           \
  static_assert(true, "takes the semicolon")

namespace shoal::learn {

// The name that users know.
constexpr const char* NameOfTarget(int64_t target) {
  return target == HWY_AVX3 ? "avx512" : target == HWY_AVX2 ? "avx2" : "sse4";
}

}  // namespace shoal::learn

#if HWY_TARGETS & HWY_AVX3
#define SHOAL_ADD_AVX3(tables) \
  if (hwy::SupportedTargets() & HWY_AVX3) tables.push_back(N_AVX3::Table())
#else
#define SHOAL_ADD_AVX3(tables) static_cast<void>(0)
#endif
#if HWY_TARGETS & HWY_AVX2
#define SHOAL_ADD_AVX2(tables) \
  if (hwy::SupportedTargets() & HWY_AVX2) tables.push_back(N_AVX2::Table())
#else
#define SHOAL_ADD_AVX2(tables) static_cast<void>(0)
#endif
#if HWY_TARGETS & HWY_SSE4
#define SHOAL_ADD_SSE4(tables) \
  if (hwy::SupportedTargets() & HWY_SSE4) tables.push_back(N_SSE4::Table())
#else
#define SHOAL_ADD_SSE4(tables) static_cast<void>(0)
#endif

// Defines AvailableKernels and ChooseKernels in the current namespace, which must have a type
// Kernels, Table() of every target, and ScalarKernels().
#define SHOAL_DEFINE_KERNEL_CHOICE()                                                          \
  static std::vector<const Kernels*> AvailableTables() {                                      \
    std::vector<const Kernels*> tables;                                                       \
    SHOAL_ADD_AVX3(tables);                                                                   \
    SHOAL_ADD_AVX2(tables);                                                                   \
    SHOAL_ADD_SSE4(tables);                                                                   \
    tables.push_back(ScalarKernels());                                                        \
    return tables;                                                                            \
  }                                                                                           \
  std::vector<std::string_view> AvailableKernels() { return KernelNames(AvailableTables()); } \
  Result<const Kernels*> ChooseKernels(std::string_view name) {                               \
    return ChooseKernelsByName(AvailableTables(), name);                                      \
  }                                                                                           \
  static_assert(true, "takes the semicolon")
