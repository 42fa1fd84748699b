#include "data/formats/csv_cells.h"

#include <algorithm>

namespace shoal::data {

bool NextCell(const char** at, const char* end, char delimiter, std::string* room,
              std::string_view* cell) {
  const char* text = *at;
  while (text < end && IsBlank(*text) && *text != delimiter) ++text;
  if (text == end || *text != '"') {
    const char* const stop = std::find(text, end, delimiter);
    const char* last = stop;
    while (last > text && IsBlank(last[-1])) --last;
    *cell = {text, static_cast<size_t>(last - text)};
    *at = stop + 1;
    return true;
  }
  room->clear();
  for (++text;; ++text) {
    const char* const quote = std::find(text, end, '"');
    if (quote == end) return false;
    room->append(text, quote);
    text = quote + 1;
    if (text == end || *text != '"') break;
    *room += '"';
  }
  *cell = *room;
  const char* const stop = std::find(text, end, delimiter);
  *at = stop + 1;
  return std::all_of(text, stop, IsBlank);
}

}  // namespace shoal::data
