// Server-sent events (HTML Living Standard, 9.2) as the server writes them; net/http/sse_reader.h
// reads them.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace shoal::api {

inline constexpr const char* kEventStream = "text/event-stream";

// "id: 7\nevent: job\ndata: {…}\n\n". `id` empty: without one.
std::string SseText(std::string_view event, std::string_view id, const json::value& data);
// A line that clients ignore; keeps the connection alive.
inline constexpr std::string_view kSseComment = ":\n\n";

}  // namespace shoal::api
