// The members of a JSON object and the elements of a JSON array as the text that they are in, so
// that a number keeps its digits and an instance is parsed once, by the reader of its row. What is
// inside a slice is not checked here beyond its brackets and quotes: the slice's reader does that.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "data/formats/fields.h"

namespace shoal::serving {

// Names are unescaped. InvalidArgument with the byte offset if `text` is no object, or a name comes
// twice. Slices point into `text`.
using JsonMembers = std::vector<std::pair<std::string, std::string_view>>;
Result<JsonMembers> MembersOf(std::string_view text);
// InvalidArgument if `text` is no array, or has more than `most` elements.
Result<std::vector<std::string_view>> ElementsOf(std::string_view text, size_t most);
// Null if there is none.
const std::string_view* FindMember(const JsonMembers& members, std::string_view name);

// A scalar as a cell of a table, as in JSON lines: a number with its text, a string, true, false or
// null. A string with escapes is kept in `room`. InvalidArgument for anything else.
Result<data::TableCell> CellOf(std::string_view slice, std::string* room);
// InvalidArgument if it is no string.
Result<std::string> TextOfSlice(std::string_view slice);

}  // namespace shoal::serving
