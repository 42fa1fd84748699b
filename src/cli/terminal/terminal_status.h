// The block of lines at the bottom of a terminal that is redrawn in place, while other lines scroll
// away above it. Used by display.cc.
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

  // Puts `above` (whole lines, each with its line feed) over the block, then draws it anew. No line
  // of `block` may be wider than the terminal.
  void Draw(const std::string& above, const std::vector<std::string>& block);
  // Leaves the block where it is, shows the cursor again. Idempotent.
  void Finish();

  // Columns and rows of the terminal; 80 × 24 if it does not say.
  void Size(int* columns, int* rows) const;

 private:
  AsyncWriter* const out_;
  int drawn_ = 0;  // lines of the block on the screen
  bool hidden_ = false;
};

}  // namespace shoal::cli
