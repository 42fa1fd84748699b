#include "sql/syntax/script_text.h"

#include <algorithm>

#include "base/utf8.h"

namespace shoal::sql {
namespace {

// Characters of a line that a message shows at most, and how many of them stand before the mark.
constexpr size_t kShown = 120;
constexpr size_t kShownBefore = 60;

struct Place {
  size_t line = 1;
  size_t begin = 0;  // of the line
  size_t end = 0;
};

Place PlaceOf(std::string_view text, size_t offset) {
  Place place;
  const std::string_view before = text.substr(0, offset);
  place.line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  place.begin = before.rfind('\n') + 1;  // npos + 1 is 0
  place.end = std::min(text.find('\n', offset), text.size());
  return place;
}

size_t CountCharacters(std::string_view text) {
  size_t count = 0;
  while (!text.empty()) {
    text.remove_prefix(std::max<size_t>(1, Utf8Length(text)));
    ++count;
  }
  return count;
}

// The text with each control character as a blank, and the bytes that are not UTF-8 replaced.
std::string Printable(std::string_view text) {
  std::string shown = ValidUtf8(text);
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return shown;
}

// Moves forward to the beginning of a character.
size_t AtCharacter(std::string_view text, size_t offset) {
  while (offset < text.size() && (static_cast<unsigned char>(text[offset]) & 0xC0U) == 0x80U)
    ++offset;
  return offset;
}

}  // namespace

std::string ScriptText::Describe(Span span, std::string_view sentence) const {
  const std::string_view text = text_;
  size_t begin = std::min(span.begin, text.size());
  const size_t end = std::clamp(span.end, begin, text.size());
  const Place place = PlaceOf(text, begin);
  const size_t from =
      begin - place.begin > kShown ? AtCharacter(text, begin - kShownBefore) : place.begin;
  const size_t to = AtCharacter(text, std::min(place.end, from + kShown));
  const size_t column = 1 + CountCharacters(text.substr(place.begin, begin - place.begin));
  const std::string number = std::to_string(place.line);
  const std::string margin = "  " + number + " | ";
  const std::string shown = Printable(text.substr(from, to - from));
  const size_t marks = std::max<size_t>(
      1, CountCharacters(text.substr(begin, std::min(end, to) - std::min(begin, to))));
  const std::string indent(CountCharacters(text.substr(from, begin - from)), ' ');
  std::string message = name_ + ":" + number + ":" + std::to_string(column) + ": ";
  message += sentence;
  message += "\n" + margin + shown + "\n" + std::string(margin.size() - 2, ' ') + "| " + indent +
             "^" + std::string(marks - 1, '~');
  return message;
}

Status ScriptText::Error(Span span, std::string_view sentence) const {
  return InvalidArgument(Describe(span, sentence));
}

Status ScriptText::Locate(Span span, const Status& status) const {
  return status.ok() ? status : Status(status.code(), Describe(span, status.message()));
}

}  // namespace shoal::sql
