#include "cli/sql/shell/history.h"

#include <fcntl.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/file.h"
#include "base/utf8.h"

namespace shoal::cli {
namespace {

constexpr size_t kMaxFile = size_t{64} << 20;

// One line of the file: backslashes and line ends are escaped.
std::string EscapedLine(const std::string& statement) {
  std::string line;
  for (const char c : statement) {
    if (c == '\\') line += '\\';
    if (c == '\n') {
      line += "\\n";
    } else {
      line += c;
    }
  }
  return line;
}

std::string UnescapedLine(const std::string& line) {
  std::string statement;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool escape = line[i] == '\\' && i + 1 < line.size();
    if (escape) ++i;
    statement += escape && line[i] == 'n' ? '\n' : line[i];
  }
  return ValidUtf8(statement);
}

}  // namespace

Result<History> History::Open(std::filesystem::path file) {
  History history(std::move(file));
  if (history.file_.empty()) return history;
  const Result<std::string> text = ReadFile(history.file_, kMaxFile);
  if (!text.ok()) {
    if (text.status().code() == Code::kNotFound) return history;
    return text.status();
  }
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) history.entries_.push_back(UnescapedLine(line));
  }
  const size_t excess = history.entries_.size() - std::min(history.entries_.size(), kMaxHistory);
  history.entries_.erase(history.entries_.begin(),
                         history.entries_.begin() + static_cast<std::ptrdiff_t>(excess));
  // Half again as long as what is read of it, so that it is rarely written anew.
  if (excess > kMaxHistory / 2) {
    std::string kept;
    for (const std::string& entry : history.entries_) kept += EscapedLine(entry) + "\n";
    TRY(WriteFileAtomically(history.file_, kept, 0600, false));
  }
  return history;
}

Status History::Add(const std::string& statement) {
  const bool kept = !statement.empty() && statement.front() != ' ' &&
                    statement.size() <= kMaxHistoryEntry &&
                    (entries_.empty() || entries_.back() != statement);
  if (!kept) return Status::Ok();
  entries_.push_back(statement);
  if (file_.empty()) return Status::Ok();
  TRY(MakeDirectories(file_.parent_path()));
  TRY_ASSIGN(const UniqueFd fd, OpenFile(file_, O_WRONLY | O_CREAT | O_APPEND, 0600));
  return WriteAll(fd.get(), EscapedLine(statement) + "\n");
}

std::optional<size_t> History::Find(std::string_view text, size_t before) const {
  for (size_t i = std::min(before, entries_.size()); i > 0; --i) {
    if (entries_[i - 1].find(text) != std::string::npos) return i - 1;
  }
  return std::nullopt;
}

}  // namespace shoal::cli
