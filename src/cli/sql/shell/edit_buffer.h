// The text that a person edits, with a cursor between its characters. It may have several lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sql/shell/keys.h"

namespace shoal::cli {

// Not thread-safe. The cursor is a byte offset at the beginning of a character.
class EditBuffer {
 public:
  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }
  bool empty() const { return text_.empty(); }

  // Replaces everything; the cursor is at the end.
  void Set(std::string text);
  // Puts the text at the cursor. Bytes that are no UTF-8 become U+FFFD.
  void Insert(std::string_view text);
  // Replaces [begin, cursor) by the text.
  void Replace(size_t begin, std::string_view text);
  // Moves the cursor or deletes, for the keys that do; false if the key does neither, or kUp and
  // kDown have no line to go to.
  bool Apply(KeyKind key);

 private:
  size_t Before(size_t at) const;
  size_t After(size_t at) const;
  size_t LineBegin() const;
  size_t LineEnd() const;
  size_t WordLeft() const;
  size_t WordRight() const;
  bool MoveToLine(bool up);
  void Erase(size_t begin, size_t end);

  std::string text_;
  size_t cursor_ = 0;
};

// A place on a screen, from 0.
struct Cell {
  size_t row = 0;
  size_t column = 0;
};

// How a text with prompts stands on a screen.
struct Layout {
  std::string shown;  // the bytes to write, from the first column on
  Cell cursor;
  Cell end;  // where the terminal's cursor is after `shown`
};

// `first` stands before the first line, `more` before the others; `columns` ≥ 2 is the screen's
// width. Control characters are shown as blanks.
Layout LayOut(const EditBuffer& buffer, std::string_view first, std::string_view more,
              size_t columns);

// Columns that a text without line ends takes: 2 for wide characters, 0 for combining ones.
size_t ColumnsOf(std::string_view text);

// The longest text that all candidates begin with.
std::string CommonPrefix(const std::vector<std::string>& candidates);

}  // namespace shoal::cli
