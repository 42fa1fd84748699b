// Lookup tables between enumerators and their names. Only for .cc files of this room.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace shoal::job {

template <typename Enum>
using NameEntry = std::pair<Enum, std::string_view>;

template <typename Enum, size_t n>
std::string_view NameOfValue(const NameEntry<Enum> (&table)[n], Enum value) {
  for (const auto& [enumerator, name] : table) {
    if (enumerator == value) return name;
  }
  return "?";
}

template <typename Enum, size_t n>
std::optional<Enum> ValueOfName(const NameEntry<Enum> (&table)[n], std::string_view text) {
  for (const auto& [enumerator, name] : table) {
    if (name == text) return enumerator;
  }
  return std::nullopt;
}

}  // namespace shoal::job
