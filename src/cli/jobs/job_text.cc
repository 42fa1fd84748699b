#include "cli/jobs/job_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal/styled_line.h"

namespace shoal::cli {

using controller::JobRecord;

std::string StateText(const JobRecord& job, bool unattended) {
  return std::string(job::NameOf(job.state)) + (unattended ? " (unattended)" : "");
}

std::string RunTime(const JobRecord& job, WallTime now, Duration suspended) {
  if (job.started == WallTime{} || job.state == job::JobState::kSuspended) return "";
  const WallTime end = job.ended == WallTime{} ? now : job.ended;
  if (end == job.started && end == job.ended) return "";  // both were recorded after its end
  return FormatDuration(std::max(Duration(0), Duration(end - job.started) - suspended));
}

std::string Ago(WallTime then, WallTime now) {
  return FormatDuration(std::max(Duration(0), Duration(now - then))) + " ago";
}

namespace {

// A cell of one line: names of files and the like may hold line breaks, which would make rows of
// their own.
std::string OneLine(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool breaks = c >= '\n' && c <= '\r';
    line += breaks ? fmt::format("\\x{:02x}", c) : std::string(1, c);
  }
  return line;
}

}  // namespace

std::string Table(const std::vector<std::vector<std::string>>& given) {
  std::vector<std::vector<std::string>> rows = given;
  std::vector<int> widths;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = OneLine(cell);
  }
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Columns(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(static_cast<size_t>(widths[i] - Columns(row[i]) + 2), ' ');
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out;
}

}  // namespace shoal::cli
