// Selects one of an algorithm's function tables, one for each instruction set. A table's `name` is
// "avx512", "avx2", "sse4" or "scalar"; the last always exists.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::learn {

template <typename Kernels>
std::vector<std::string_view> KernelNames(const std::vector<const Kernels*>& tables) {
  std::vector<std::string_view> names;
  for (const Kernels* table : tables) names.emplace_back(table->name);
  return names;
}

// Finds a table by name. `tables`: those that this machine can run, best first. "auto" means the
// value of SHOAL_SIMD, else the best. InvalidArgument for a name that is not among them.
template <typename Kernels>
Result<const Kernels*> ChooseKernelsByName(const std::vector<const Kernels*>& tables,
                                           std::string_view name) {
  const char* const forced = std::getenv("SHOAL_SIMD");
  if (name == "auto" && forced != nullptr && *forced != 0) name = forced;
  if (name == "auto") return tables.front();
  for (const Kernels* table : tables) {
    if (name == table->name) return table;
  }
  return InvalidArgument(
      fmt::format("vector instructions: got {}, expected auto or one that this machine can run: {}",
                  name, fmt::join(KernelNames(tables), ", ")));
}

}  // namespace shoal::learn
