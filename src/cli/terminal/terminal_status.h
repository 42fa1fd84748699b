// The status block: lines at the bottom of a terminal that are redrawn in place while other lines
// scroll above. Used by display.cc.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/async_writer.h"

namespace shoal::cli {

class TerminalStatus {
 public:
  explicit TerminalStatus(AsyncWriter* out) : out_(out) {}
  ~TerminalStatus() { Finish(); }
  TerminalStatus(const TerminalStatus&) = delete;
  TerminalStatus& operator=(const TerminalStatus&) = delete;

  // Prints `above` (complete lines with line feeds) above the block and redraws the block. No line
  // of `block` may be wider than the terminal.
  void Draw(const std::string& above, const std::vector<std::string>& block);
  // Leaves the block on the screen and shows the cursor. Idempotent.
  void Finish();

  // Columns and rows of the terminal; 80 × 24 if unknown.
  void Size(int* columns, int* rows) const;

 private:
  AsyncWriter* const out_;
  int drawn_ = 0;  // lines of the block on the screen
  bool hidden_ = false;
};

}  // namespace shoal::cli
