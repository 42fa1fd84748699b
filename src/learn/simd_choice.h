// The end of an algorithm's kernels.cc, where Highway has compiled it once for every instruction
// set: the tables that this machine can run, and the choice among them. To be included last of
// Highway's headers, by a file that disables the targets that no table is made for.
#pragma once

#include <hwy/highway.h>

#include "learn/simd.h"

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
#define SHOAL_DEFINE_KERNEL_CHOICE()                                                      \
  static std::vector<const Kernels*> AvailableTables() {                                  \
    std::vector<const Kernels*> tables;                                                   \
    SHOAL_ADD_AVX3(tables);                                                               \
    SHOAL_ADD_AVX2(tables);                                                               \
    SHOAL_ADD_SSE4(tables);                                                               \
    tables.push_back(ScalarKernels());                                                    \
    return tables;                                                                        \
  }                                                                                       \
  std::vector<std::string_view> AvailableKernels() { return NamesOf(AvailableTables()); } \
  Result<const Kernels*> ChooseKernels(std::string_view name) {                           \
    return ChooseByName(AvailableTables(), name);                                         \
  }                                                                                       \
  static_assert(true, "takes the semicolon")
