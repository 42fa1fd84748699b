#include "controller/store/cursor.h"

#include <charconv>

#include "base/utf8.h"

namespace shoal::controller {
namespace {

constexpr size_t kMaxCursor = 128;

Status NotACursor(std::string_view text) {
  return InvalidArgument("\"" + EscapedUtf8(text.substr(0, kMaxCursor)) +
                         "\" is not a cursor of this server; start without `after`, and pass the "
                         "cursor that the previous page ends with");
}

}  // namespace

std::string FormatCursor(std::string_view store_id, int64_t position) {
  return std::string(store_id) + "-" + std::to_string(position);
}

Result<int64_t> ParseCursor(std::string_view store_id, std::string_view text) {
  const size_t dash = text.rfind('-');
  if (text.size() > kMaxCursor || dash == std::string_view::npos || dash + 1 == text.size())
    return NotACursor(text);
  if (text.substr(0, dash) != store_id) return NotACursor(text);
  int64_t position = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + dash + 1, end, position);
  if (parsed.ec != std::errc() || parsed.ptr != end || position < 0) return NotACursor(text);
  return position;
}

}  // namespace shoal::controller
