// What a notebook shows about the name at a place of a script.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sql/session/state.h"

namespace shoal::sql {

// Lines about the table, variable, function, format, algorithm or statement whose name is at
// `cursor` or ends there; empty if nothing is known of it. `cursor` ≤ text.size(). Reads no files.
std::string Inspect(std::string_view text, size_t cursor, const SessionState& state);

}  // namespace shoal::sql
