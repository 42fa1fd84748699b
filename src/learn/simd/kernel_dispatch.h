// What every algorithm's kernels.cc, which Highway compiles once for every instruction set, has
// around its functions: the table of each target, those that this machine can run, and the choice
// among them. To be included last of Highway's headers, by a file that disables the targets that no
// table is made for.
#pragma once

#include <hwy/highway.h>

#include <cstdint>

#include "learn/simd/kernel_choice.h"

// Whether the target that is compiled now gets a table.
#define SHOAL_TARGET_HAS_KERNELS \
  (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4)

// Defines Table() of the target in whose HWY_NAMESPACE it stands: its name, and the functions given
// in the order of the algorithm's Kernels.
#define SHOAL_DEFINE_KERNEL_TABLE(...)                                        \
  const Kernels* Table() {                                                    \
    static constexpr Kernels table = {NameOfTarget(HWY_TARGET), __VA_ARGS__}; \
    return &table;                                                            \
  }                                                                           \
  static_assert(true, "takes the semicolon")

namespace shoal::learn {

// As users say it.
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

// Defines AvailableKernels and ChooseKernels of the namespace it stands in, which has a type
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
