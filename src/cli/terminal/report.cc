#include "cli/terminal/report.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "base/file.h"
#include "base/output_file.h"
#include "base/portable_json.h"
#include "cli/terminal/progress.h"

namespace shoal::cli {
namespace {

// Removes sequences that would move a terminal's cursor or change its state.
std::string ForTerminal(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += SafeForTerminal(std::string(text.substr(0, end)));
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

void PrintLines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += "shoal: ";
    out += text.substr(0, end);
    out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (::isatty(STDERR_FILENO) == 1) out = ForTerminal(out);
  (void)WriteAll(STDERR_FILENO, out);
}

// Edit distance with transpositions (Damerau-Levenshtein). O(a·b).
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

int PrintError(const Status& status) {
  PrintLines(status.message().empty() ? CodeName(status.code()) : status.message());
  return ExitCodeOf(status.code());
}

void PrintNote(std::string_view sentence) { PrintLines(sentence); }

std::string NearestName(std::string_view word, const std::vector<std::string>& names) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, (word.size() + 2) / 3) + 1;
  for (const std::string& name : names) {
    const size_t distance = Distance(word, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string JsonLine(const json::value& value) { return ToText(PortableJson(value)) + "\n"; }
std::string JsonLines(const json::value& value) { return ToPrettyText(PortableJson(value)) + "\n"; }

Status PrintOut(std::string_view text) {
  OutputStream out(STDOUT_FILENO);
  out.Write(::isatty(STDOUT_FILENO) == 1 ? ForTerminal(text) : std::string(text));
  return out.status();
}

int PrintResult(std::string_view text, int code) {
  const Status printed = PrintOut(text);
  return printed.ok() ? code : PrintError(printed);
}

void DiscardIfStdoutIsClosed() {
  const int flags = ::fcntl(STDOUT_FILENO, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) return;
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (null.get() >= 0) ::dup2(null.get(), STDOUT_FILENO);
}

int PrintConfirmation(std::string_view text) {
  DiscardIfStdoutIsClosed();
  return PrintResult(text);
}

}  // namespace shoal::cli
