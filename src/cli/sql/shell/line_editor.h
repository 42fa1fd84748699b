// Reads statements from a terminal: several lines, history, completion. A small editor of our own,
// since Debian 12 has no library for it that a static program can hold (docs/adr/0422).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cli/sql/shell/edit_buffer.h"
#include "cli/sql/shell/history.h"
#include "cli/sql/shell/keys.h"

namespace shoal::cli {

// What the editor reads from and writes to: a terminal, or a test.
struct EditorTerminal {
  ReadByte read;
  std::function<Status(std::string_view)> write;
  std::function<size_t()> columns;
};

struct EditorOptions {
  std::string prompt;
  std::string more;  // before the second and further lines
  // Whether Enter ends the text; else it begins another line.
  std::function<bool(const std::string& text)> complete;
  // Candidates for the word at the cursor, which replace [first, cursor).
  std::function<std::pair<size_t, std::vector<std::string>>(const std::string& text, size_t cursor)>
      candidates;
};

enum class EditEnd : uint8_t { kEntered, kInterrupted, kEndOfInput };

// Not thread-safe.
class LineEditor {
 public:
  // `history` must outlive it.
  LineEditor(EditorTerminal terminal, EditorOptions options, const History* history)
      : terminal_(std::move(terminal)), options_(std::move(options)), history_(*history) {}

  // Edits one text, which `text` gets. Ctrl-C ends it as kInterrupted, Ctrl-D in an empty text and
  // a terminal that is gone as kEndOfInput. The terminal must be in raw mode.
  EditEnd Read(std::string* text);

 private:
  // True when the text is entered.
  bool Handle(const Key& key);
  void CompleteWord();
  void ShowCandidates(const std::vector<std::string>& candidates);
  void MoveInHistory(bool up);
  void Search();
  void Draw(std::string_view prompt);
  void Write(std::string_view text);
  // Below what is drawn, at the beginning of a row.
  void LeaveText();

  const EditorTerminal terminal_;
  const EditorOptions options_;
  const History& history_;
  EditBuffer buffer_;
  size_t cursor_row_ = 0;  // of the terminal, from the first row of what is drawn
  size_t last_row_ = 0;    // of what is drawn
  size_t history_at_ = 0;  // the shown entry; entries().size(): the own text
  Status written_;         // the first error of the terminal
  std::string draft_;      // the own text while entries are shown
};

// The terminal of standard input and output in raw mode, as long as this lives.
class RawTerminal {
 public:
  RawTerminal();
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  // `stopped`: asked about once a second; true ends the input.
  EditorTerminal terminal(std::function<bool()> stopped) const;

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;
};

}  // namespace shoal::cli
