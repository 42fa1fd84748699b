#include "cli/terminal/styled_line.h"

#include "base/utf8.h"
#include "cli/terminal/progress.h"

namespace shoal::cli {
namespace {

std::string_view Escape(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kGreen:
      return "\x1b[32m";
    case Style::kYellow:
      return "\x1b[33m";
    case Style::kRed:
      return "\x1b[31m";
  }
  return "";
}

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// The first `columns` code points of valid UTF-8.
std::string_view Cut(std::string_view text, int columns) {
  size_t at = 0;
  while (at < text.size()) {
    if (!IsContinuation(text[at]) && columns-- == 0) break;
    ++at;
  }
  return text.substr(0, at);
}

// Length of a colour sequence (ESC [ digits ; … m) at the beginning; 0 if there is none.
size_t ColorLength(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  size_t at = 2;
  while (at < text.size() && at < 32 && ((text[at] >= '0' && text[at] <= '9') || text[at] == ';'))
    ++at;
  return at < text.size() && text[at] == 'm' ? at + 1 : 0;
}

// Length of any other escape sequence at the beginning, at least 1 for a bare ESC.
size_t SequenceToDrop(std::string_view text) {
  if (text.size() < 2) return 1;
  if (text[1] == '[') {
    size_t at = 2;
    while (at < text.size() && (text[at] < '@' || text[at] > '~')) ++at;
    return std::min(at + 1, text.size());
  }
  if (text[1] == ']') {  // operating system command: up to BEL or ESC backslash
    const size_t end = text.find_first_of("\a\x1b", 2);
    if (end == std::string_view::npos) return text.size();
    return text[end] == '\a' ? end + 1 : std::min(end + 2, text.size());
  }
  return static_cast<unsigned char>(text[1]) < 0x80 ? 2 : 1;  // never into the middle of a letter
}

}  // namespace

int Columns(std::string_view text) {
  int columns = 0;
  for (const char byte : text) columns += IsContinuation(byte) ? 0 : 1;
  return columns;
}

StyledLine& StyledLine::Add(std::string text, Style style) {
  if (!text.empty()) pieces_.emplace_back(std::move(text), style);
  return *this;
}

int StyledLine::columns() const {
  int columns = 0;
  for (const auto& [text, style] : pieces_) columns += Columns(text);
  return columns;
}

std::string StyledLine::Render(int width, bool color) const {
  std::string out;
  int left = width;
  const bool cut = columns() > width;
  if (cut) --left;  // for the ellipsis
  for (const auto& [text, style] : pieces_) {
    const std::string_view piece = Cut(text, left);
    left -= Columns(piece);
    const std::string_view escape = color ? Escape(style) : "";
    out += escape;
    out += piece;
    if (!escape.empty()) out += "\x1b[0m";
    if (left <= 0) break;
  }
  if (cut && width > 0) out += "…";
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string SafeForTerminal(const std::string& line) {
  const std::string valid = ValidUtf8(line);
  std::string_view rest = valid;
  std::string out;
  bool colored = false;
  while (!rest.empty()) {
    size_t length = Utf8Length(rest);
    const auto byte = static_cast<unsigned char>(rest.front());
    if (byte == 0x1b) {
      if (const size_t color = ColorLength(rest); color > 0) {
        out += rest.substr(0, color);
        colored = true;
        length = color;
      } else {
        length = SequenceToDrop(rest);
      }
    } else if (byte >= 0x20 ? byte != 0x7f : byte == '\t') {
      // C1 controls (U+0080…U+009F) are C2 80…C2 9F.
      const bool c1 = byte == 0xc2 && static_cast<unsigned char>(rest[1]) < 0xa0;
      if (!c1) out += rest.substr(0, length);
    }
    rest.remove_prefix(length);
  }
  if (colored) out += "\x1b[0m";
  return out;
}

}  // namespace shoal::cli
