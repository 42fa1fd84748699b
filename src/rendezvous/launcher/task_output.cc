#include "rendezvous/launcher/task_output.h"

#include <algorithm>

#include "job/execution/policy.h"

namespace shoal::rendezvous {

TaskOutput::TaskOutput(int processes, std::vector<std::string> patterns)
    : patterns_(std::move(patterns)),
      matched_(patterns_.size()),
      processes_(static_cast<size_t>(std::max(processes, 1))) {}

std::string_view TaskOutput::Take(int process, std::string_view bytes) {
  Process& one = processes_[static_cast<size_t>(process)];
  one.last.Feed(bytes);
  if (!patterns_.empty()) Watch(&one, bytes);
  if (processes_.size() == 1) return bytes;
  out_.clear();
  Prefix(static_cast<size_t>(process), bytes);
  return out_;
}

void TaskOutput::Prefix(size_t number, std::string_view bytes) {
  std::string& held = processes_[number].held;
  const std::string mark = "[" + std::to_string(number) + "] ";
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const size_t room = kLongestLine - held.size();
    const size_t take = std::min({end, room, bytes.size()});
    held.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
    const bool ended = !bytes.empty() && bytes[0] == '\n';
    if (!ended && held.size() < kLongestLine) return;
    if (ended) bytes.remove_prefix(1);
    out_.append(mark).append(held) += '\n';
    held.clear();
  }
}

std::string_view TaskOutput::Finish() {
  out_.clear();
  for (size_t i = 0; i < processes_.size(); ++i) {
    Process& one = processes_[i];
    if (!one.watched.empty()) LookAt(one.watched);
    if (one.held.empty()) continue;
    out_.append("[" + std::to_string(i) + "] ").append(one.held) += '\n';
    one.held.clear();
  }
  return out_;
}

void TaskOutput::Watch(Process* process, std::string_view bytes) {
  std::string& line = process->watched;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (end != std::string_view::npos && line.empty()) {
      LookAt(part.substr(0, kWatchedLine));
    } else {
      line.append(part.substr(0, kWatchedLine - line.size()));
      if (end != std::string_view::npos) LookAt(line);
    }
    if (end == std::string_view::npos) return;
    line.clear();
    bytes.remove_prefix(end + 1);
  }
}

void TaskOutput::LookAt(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  for (size_t i = 0; i < patterns_.size(); ++i) {
    if (matched_[i] || !job::LineMatches(patterns_[i], line)) continue;
    matched_[i] = true;
    untold_.push_back(static_cast<int>(i));
  }
}

int TaskOutput::TakeMatch() {
  if (untold_.empty()) return -1;
  const int first = untold_.front();
  untold_.erase(untold_.begin());
  return first;
}

const std::string& TaskOutput::last_line(int process) const {
  const size_t known = processes_.size() - 1;
  return processes_[std::min(static_cast<size_t>(std::max(process, 0)), known)].last.text();
}

}  // namespace shoal::rendezvous
