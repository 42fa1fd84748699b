// Completion of statements: what may stand at a place of a script. The shell asks when a person
// presses the tabulator.
//
// It knows the names that statements are checked against: tables and columns of the session and of
// the statements before the place, formats, algorithms and their parameters, functions, variables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sql/session/state.h"

namespace shoal::sql {

struct Completion {
  size_t begin = 0;                     // the candidates replace [begin, cursor)
  std::vector<std::string> candidates;  // sorted, each once; at most kMaxCandidates
};
inline constexpr size_t kMaxCandidates = 1000;

// `cursor` ≤ text.size(). Reads directories for paths, and nothing else. O(cursor).
Completion Complete(std::string_view text, size_t cursor, const SessionState& state);

}  // namespace shoal::sql
