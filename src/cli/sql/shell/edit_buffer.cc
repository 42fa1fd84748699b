#include "cli/sql/shell/edit_buffer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace shoal::cli {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t'; }

// The character at the beginning of a valid text.
uint32_t CharacterOf(std::string_view text, size_t length) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[i]));
  };
  switch (length) {
    case 2:
      return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
    case 3:
      return (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    case 4:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 |
             (byte(3) & 0x3f);
    default:
      return byte(0);
  }
}

// Columns of a character, by the blocks of Unicode's EastAsianWidth.txt.
size_t WidthOf(uint32_t c) {
  const auto within = [c](uint32_t first, uint32_t last) { return c >= first && c <= last; };
  if (within(0x300, 0x36f) || within(0x200b, 0x200f) || within(0xfe00, 0xfe0f)) return 0;
  const bool wide = within(0x1100, 0x115f) || within(0x2e80, 0xa4cf) || within(0xac00, 0xd7a3) ||
                    within(0xf900, 0xfaff) || within(0xfe30, 0xfe6f) || within(0xff00, 0xff60) ||
                    within(0x1f300, 0x1f64f) || within(0x1f900, 0x1f9ff) ||
                    within(0x20000, 0x3fffd);
  return wide ? 2 : 1;
}

size_t LengthAt(std::string_view text, size_t at) {
  return std::max<size_t>(1, Utf8Length(text.substr(at)));
}

// Where the terminal's cursor is after more characters: a full row goes on with the next character.
void Advance(size_t width, size_t columns, Cell* cell) {
  if (cell->column + width > columns) *cell = {cell->row + 1, 0};
  cell->column += width;
}

}  // namespace

size_t ColumnsOf(std::string_view text) {
  size_t columns = 0;
  for (size_t at = 0; at < text.size(); at += LengthAt(text, at))
    columns += WidthOf(CharacterOf(text.substr(at), LengthAt(text, at)));
  return columns;
}

std::string CommonPrefix(const std::vector<std::string>& candidates) {
  if (candidates.empty()) return "";
  std::string prefix = candidates.front();
  for (const std::string& one : candidates) {
    const auto differ = std::mismatch(prefix.begin(), prefix.end(), one.begin(), one.end());
    prefix.erase(differ.first, prefix.end());
  }
  while (!prefix.empty() && !IsUtf8(prefix)) prefix.pop_back();
  return prefix;
}

void EditBuffer::Set(std::string text) {
  text_ = ValidUtf8(text);
  cursor_ = text_.size();
}

void EditBuffer::Insert(std::string_view text) { Replace(cursor_, text); }

void EditBuffer::Replace(size_t begin, std::string_view text) {
  const std::string valid = ValidUtf8(text);
  text_.replace(begin, cursor_ - begin, valid);
  cursor_ = begin + valid.size();
}

size_t EditBuffer::Before(size_t at) const {
  if (at == 0) return 0;
  --at;
  while (at > 0 && (static_cast<unsigned char>(text_[at]) & 0xc0) == 0x80) --at;
  return at;
}

size_t EditBuffer::After(size_t at) const {
  return at >= text_.size() ? text_.size() : at + LengthAt(text_, at);
}

size_t EditBuffer::LineBegin() const {
  if (cursor_ == 0) return 0;
  const size_t end = text_.rfind('\n', cursor_ - 1);
  return end == std::string::npos ? 0 : end + 1;
}

size_t EditBuffer::LineEnd() const { return std::min(text_.find('\n', cursor_), text_.size()); }

size_t EditBuffer::WordLeft() const {
  size_t at = cursor_;
  while (at > 0 && IsBlank(text_[at - 1])) --at;
  while (at > 0 && !IsBlank(text_[at - 1])) --at;
  return at;
}

size_t EditBuffer::WordRight() const {
  size_t at = cursor_;
  while (at < text_.size() && IsBlank(text_[at])) ++at;
  while (at < text_.size() && !IsBlank(text_[at])) ++at;
  return at;
}

// To the line above or below, in the same column where it is long enough.
bool EditBuffer::MoveToLine(bool up) {
  const size_t begin = LineBegin(), end = LineEnd();
  if (up ? begin == 0 : end == text_.size()) return false;
  const size_t column = ColumnsOf(std::string_view(text_).substr(begin, cursor_ - begin));
  cursor_ = up ? begin - 1 : end + 1;
  const size_t last = LineEnd();
  cursor_ = LineBegin();
  size_t moved = 0;
  while (cursor_ < last && moved < column) {
    moved += ColumnsOf(std::string_view(text_).substr(cursor_, LengthAt(text_, cursor_)));
    cursor_ = After(cursor_);
  }
  return true;
}

void EditBuffer::Erase(size_t begin, size_t end) {
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

bool EditBuffer::Apply(KeyKind key) {
  switch (key) {
    case KeyKind::kLeft:
      cursor_ = Before(cursor_);
      return true;
    case KeyKind::kRight:
      cursor_ = After(cursor_);
      return true;
    case KeyKind::kUp:
    case KeyKind::kDown:
      return MoveToLine(key == KeyKind::kUp);
    case KeyKind::kHome:
      cursor_ = LineBegin();
      return true;
    case KeyKind::kEnd:
      cursor_ = LineEnd();
      return true;
    case KeyKind::kWordLeft:
      cursor_ = WordLeft();
      return true;
    case KeyKind::kWordRight:
      cursor_ = WordRight();
      return true;
    case KeyKind::kBackspace:
      Erase(Before(cursor_), cursor_);
      return true;
    case KeyKind::kDelete:
      Erase(cursor_, After(cursor_));
      return true;
    case KeyKind::kCutToStart:
      Erase(LineBegin(), cursor_);
      return true;
    case KeyKind::kCutToEnd:
      Erase(cursor_, LineEnd());
      return true;
    case KeyKind::kCutWord:
      Erase(WordLeft(), cursor_);
      return true;
    default:
      return false;
  }
}

Layout LayOut(const EditBuffer& buffer, std::string_view first, std::string_view more,
              size_t columns) {
  Layout layout;
  Cell& end = layout.end;
  const std::string_view text = buffer.text();
  layout.shown = first;
  end.column = ColumnsOf(first);
  for (size_t at = 0; at < text.size();) {
    if (at == buffer.cursor()) layout.cursor = end;
    if (text[at] == '\n') {
      layout.shown += "\r\n" + std::string(more);
      end = {end.row + 1, ColumnsOf(more)};
      ++at;
      continue;
    }
    const size_t length = LengthAt(text, at);
    const bool control = static_cast<unsigned char>(text[at]) < ' ' || text[at] == 127;
    layout.shown += control ? " " : text.substr(at, length);
    Advance(control ? 1 : WidthOf(CharacterOf(text.substr(at), length)), columns, &end);
    at += length;
  }
  if (end.column >= columns) {  // the terminal waits with the next row
    layout.shown += "\r\n";
    end = {end.row + 1, 0};
  }
  if (buffer.cursor() == text.size()) layout.cursor = end;
  if (layout.cursor.column >= columns) layout.cursor = {layout.cursor.row + 1, 0};
  return layout;
}

}  // namespace shoal::cli
