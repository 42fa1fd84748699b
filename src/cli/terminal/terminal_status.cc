#include "cli/terminal/terminal_status.h"

#include <sys/ioctl.h>

#include <utility>

namespace shoal::cli {

void TerminalStatus::Draw(const std::string& above, const std::vector<std::string>& block) {
  // A single write, so the terminal never shows a partial update.
  std::string out;
  if (!hidden_) out += "\x1b[?25l";
  hidden_ = true;
  if (drawn_ > 0) out += "\x1b[" + std::to_string(drawn_) + "A";
  if (above.empty()) {
    out += "\r";
  } else {
    out += "\r\x1b[J" + above;
  }
  for (const std::string& line : block) out += line + "\x1b[K\n";
  out += "\x1b[J";
  drawn_ = static_cast<int>(block.size());
  out_->Write(std::move(out));
}

void TerminalStatus::Finish() {
  if (hidden_) out_->Write("\x1b[?25h");
  hidden_ = false;
  drawn_ = 0;
}

void TerminalStatus::Size(int* columns, int* rows) const {
  winsize size{};
  const bool known =
      ioctl(out_->fd(), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  *columns = known ? size.ws_col : 80;
  *rows = known ? size.ws_row : 24;
}

}  // namespace shoal::cli
