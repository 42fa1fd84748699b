#include "cli/terminal/hidden_input.h"

#include <termios.h>
#include <unistd.h>

#include <iostream>

namespace shoal::cli {
namespace {

// Without the characters that a terminal shows; restores them when it ends.
class WithoutEcho {
 public:
  WithoutEcho() {
    terminal_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!terminal_) return;
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    (void)::tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  }
  ~WithoutEcho() {
    if (terminal_) (void)::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  WithoutEcho(const WithoutEcho&) = delete;
  WithoutEcho& operator=(const WithoutEcho&) = delete;

 private:
  termios before_{};
  bool terminal_ = false;
};

std::string ReadLine(const std::string& prompt) {
  const WithoutEcho hidden;
  std::cerr << prompt << std::flush;
  std::string line;
  std::getline(std::cin, line);
  std::cerr << "\n";
  return line;
}

}  // namespace

Result<std::string> ReadHidden(const std::string& prompt, size_t limit) {
  std::string text;
  if (::isatty(STDIN_FILENO) == 1) {
    text = ReadLine(prompt);
  } else {
    std::string piece(4096, '\0');
    while (text.size() <= limit &&
           (std::cin.read(piece.data(), static_cast<std::streamsize>(piece.size())),
            std::cin.gcount() > 0))
      text.append(piece, 0, static_cast<size_t>(std::cin.gcount()));
    if (!text.empty() && text.back() == '\n') text.pop_back();
  }
  if (text.size() <= limit) return text;
  return ResourceExhausted("standard input has more than " + std::to_string(limit) + " bytes");
}

}  // namespace shoal::cli
