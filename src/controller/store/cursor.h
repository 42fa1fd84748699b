// Cursors: where the next page of a listing begins, as text that a client hands back. Used by the
// store's pages and by `api` for positions in the event log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal::controller {

// `position` (at least 0) of the store `store_id`: "3f9a…-1204".
std::string FormatCursor(std::string_view store_id, int64_t position);

// The position. InvalidArgument if the text is no cursor, or one of another store.
Result<int64_t> ParseCursor(std::string_view store_id, std::string_view text);

}  // namespace shoal::controller
