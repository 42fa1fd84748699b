// Cells of a line of comma-separated values, with quotes as RFC 4180 has them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal::data {

inline constexpr size_t kMaxCsvColumns = 65536;

inline bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Parses the next cell of [*at, end): without quotes and surrounding blanks. False for an unclosed
// quote. Moves `*at` after the delimiter, or one past the end after the last cell. `room` holds the
// text if it differs from the bytes.
bool NextCell(const char** at, const char* end, char delimiter, std::string* room,
              std::string_view* cell);

}  // namespace shoal::data
