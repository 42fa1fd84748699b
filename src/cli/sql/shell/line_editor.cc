#include "cli/sql/shell/line_editor.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"

namespace shoal::cli {
namespace {

constexpr size_t kShownCandidates = 100;
constexpr int kKeyBytesMs = 50;  // the bytes of one key come within this
constexpr int kAskStoppedMs = 1000;
constexpr size_t kLeastColumns = 20;

std::optional<char> ReadTerminal(bool wait, const std::function<bool()>& stopped) {
  struct pollfd input = {STDIN_FILENO, POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&input, 1, wait ? kAskStoppedMs : kKeyBytesMs);
    if (stopped()) return std::nullopt;
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && wait) continue;
    if (ready <= 0) return std::nullopt;
    char byte = 0;
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    return got == 1 ? std::optional<char>(byte) : std::nullopt;
  }
}

size_t TerminalColumns() {
  struct winsize size = {};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? std::max<size_t>(kLeastColumns, size.ws_col) : 80;
}

std::string Up(size_t rows) { return rows == 0 ? "" : "\x1b[" + std::to_string(rows) + "A"; }
std::string Right(size_t columns) {
  return columns == 0 ? "" : "\x1b[" + std::to_string(columns) + "C";
}

}  // namespace

void LineEditor::Draw(std::string_view prompt) {
  const Layout layout = LayOut(buffer_, prompt, options_.more, terminal_.columns());
  std::string out = Up(cursor_row_) + "\r\x1b[J" + layout.shown;
  out += Up(layout.end.row - layout.cursor.row) + "\r" + Right(layout.cursor.column);
  Write(out);
  cursor_row_ = layout.cursor.row;
  last_row_ = layout.end.row;
}

void LineEditor::Write(std::string_view text) {
  if (written_.ok()) written_ = terminal_.write(text);
}

void LineEditor::LeaveText() {
  std::string out;
  for (; cursor_row_ < last_row_; ++cursor_row_) out += "\n";
  Write(out + "\r\n");
  cursor_row_ = last_row_ = 0;
}

EditEnd LineEditor::Read(std::string* text) {
  buffer_.Set("");
  cursor_row_ = last_row_ = 0;
  history_at_ = history_.entries().size();
  Draw(options_.prompt);
  for (;;) {
    const Key key = ReadKey(terminal_.read);
    const bool end = key.kind == KeyKind::kEndOfInput;
    if (key.kind == KeyKind::kGone || !written_.ok()) return EditEnd::kEndOfInput;
    if (key.kind == KeyKind::kInterrupt || (end && buffer_.empty())) {
      LeaveText();
      return end ? EditEnd::kEndOfInput : EditEnd::kInterrupted;
    }
    if (Handle(end ? Key{KeyKind::kDelete, ""} : key)) {
      LeaveText();
      *text = buffer_.text();
      return EditEnd::kEntered;
    }
    Draw(options_.prompt);
  }
}

bool LineEditor::Handle(const Key& key) {
  switch (key.kind) {
    case KeyKind::kText:
      buffer_.Insert(key.text);
      return false;
    case KeyKind::kEnter:
      if (options_.complete(buffer_.text())) return true;
      buffer_.Insert("\n");
      return false;
    case KeyKind::kTab:
      CompleteWord();
      return false;
    case KeyKind::kSearch:
      Search();
      return false;
    case KeyKind::kClearScreen:
      Write("\x1b[H\x1b[2J");
      cursor_row_ = 0;
      return false;
    default:
      break;
  }
  const bool up = key.kind == KeyKind::kUp;
  if (!buffer_.Apply(key.kind) && (up || key.kind == KeyKind::kDown)) MoveInHistory(up);
  return false;
}

void LineEditor::CompleteWord() {
  const auto [begin, candidates] = options_.candidates(buffer_.text(), buffer_.cursor());
  if (candidates.empty()) return;
  const std::string common = CommonPrefix(candidates);
  const size_t typed = buffer_.cursor() - begin;
  const bool longer = common.size() > typed || candidates.size() == 1;
  if (longer) return buffer_.Replace(begin, common);
  ShowCandidates(candidates);
}

// In columns below the text, which is then drawn again.
void LineEditor::ShowCandidates(const std::vector<std::string>& candidates) {
  LeaveText();
  const size_t shown = std::min(candidates.size(), kShownCandidates);
  size_t width = 0;
  for (size_t i = 0; i < shown; ++i) width = std::max(width, ColumnsOf(candidates[i]) + 2);
  const size_t in_row = std::max<size_t>(1, terminal_.columns() / width);
  std::string out;
  for (size_t i = 0; i < shown; ++i) {
    const bool last = (i + 1) % in_row == 0 || i + 1 == shown;
    out += candidates[i];
    out += last ? "\r\n" : std::string(width - ColumnsOf(candidates[i]), ' ');
  }
  if (shown < candidates.size())
    out += "and " + std::to_string(candidates.size() - shown) + " more\r\n";
  Write(out);
}

void LineEditor::MoveInHistory(bool up) {
  const size_t count = history_.entries().size();
  if (up ? history_at_ == 0 : history_at_ == count) return;
  if (history_at_ == count) draft_ = buffer_.text();
  history_at_ = up ? history_at_ - 1 : history_at_ + 1;
  buffer_.Set(history_at_ == count ? draft_ : history_.entries()[history_at_]);
}

// Ctrl-R: the newest statement that contains what is typed; again: an older one; any other key goes
// on with it.
void LineEditor::Search() {
  const std::string before = buffer_.text();
  std::string wanted;
  size_t limit = history_.entries().size();
  for (;;) {
    Draw("search '" + wanted + "': ");
    const Key key = ReadKey(terminal_.read);
    if (key.kind == KeyKind::kText) {
      wanted += key.text;
      limit = history_.entries().size();
    } else if (key.kind == KeyKind::kBackspace && !wanted.empty()) {
      wanted.pop_back();
      limit = history_.entries().size();
    } else if (key.kind == KeyKind::kInterrupt) {
      return buffer_.Set(before);
    } else if (key.kind != KeyKind::kSearch) {
      return;
    }
    const auto found = history_.Find(wanted, limit);
    if (!found || wanted.empty()) continue;
    limit = *found;
    history_at_ = *found;
    buffer_.Set(history_.entries()[*found]);
  }
}

struct RawTerminal::Saved {
  termios settings = {};
  bool marks = false;  // the terminal took the request
};

RawTerminal::RawTerminal() : saved_(std::make_unique<Saved>()) {
  if (::tcgetattr(STDIN_FILENO, &saved_->settings) != 0) {
    saved_.reset();
    return;
  }
  termios raw = saved_->settings;
  raw.c_iflag &= ~static_cast<tcflag_t>(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
  raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | IEXTEN | ISIG);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  (void)::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  saved_->marks = WriteAll(STDOUT_FILENO, "\x1b[?2004h").ok();  // pasted text is marked
}

RawTerminal::~RawTerminal() {
  if (saved_ == nullptr) return;
  if (saved_->marks) saved_->marks = WriteAll(STDOUT_FILENO, "\x1b[?2004l").ok();
  (void)::tcsetattr(STDIN_FILENO, TCSADRAIN, &saved_->settings);
}

EditorTerminal RawTerminal::terminal(std::function<bool()> stopped) const {
  return {[stopped = std::move(stopped)](bool wait) { return ReadTerminal(wait, stopped); },
          [](std::string_view text) { return WriteAll(STDOUT_FILENO, text); }, TerminalColumns};
}

}  // namespace shoal::cli
