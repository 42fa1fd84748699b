#include "engine/tasks/restart_rules.h"

#include <cstring>
#include <set>
#include <utility>

namespace shoal::engine {
namespace {

std::string LastLine(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  const size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

}  // namespace

bool IsLoss(const TaskEnd& end) { return end.signal != 0 || end.exit_code != 0; }

std::string DescribeEnd(const TaskEnd& end) {
  if (end.signal != 0) {
    const char* name = ::strsignal(end.signal);
    return "was killed by signal " + std::to_string(end.signal) +
           (name != nullptr ? " (" + std::string(name) + ")" : "");
  }
  if (end.exit_code < 0) return "ended with an unknown status";
  return "exited with code " + std::to_string(end.exit_code);
}

std::string DescribeGivenUp(int deaths, const TaskEnd& last, const std::string& log_tail) {
  const std::string said = LastLine(log_tail);
  return "ended " + std::to_string(deaths) +
         " times in a row as soon as it was started; the last time it " + DescribeEnd(last) +
         (said.empty() ? " and said nothing" : " and said: " + said);
}

Status CheckName(const std::string& what, const std::string& name) {
  constexpr size_t kLongest = 200;
  bool fine = !name.empty() && name[0] != '.' && name.size() <= kLongest;
  for (char c : name) {
    fine = fine && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_' || c == '.');
  }
  if (fine) return Status::Ok();
  return InvalidArgument(what + ": got \"" + name.substr(0, kLongest) +
                         "\", expected letters, digits, '-', '_' and '.', at most 200");
}

Status CheckDesiredJob(const DesiredJob& desired) {
  TRY(CheckName("job id", desired.job_id));
  std::set<std::pair<std::string, int>> seen;
  for (const DesiredTask& task : desired.tasks) {
    TRY(CheckName("role of job " + desired.job_id, task.role));
    const std::string name = task.role + " " + std::to_string(task.index);
    if (task.index < 0) return InvalidArgument("task " + name + ": its index is negative");
    if (task.argv.empty() || task.argv[0].empty())
      return InvalidArgument("task " + name + " has no command");
    if (!seen.emplace(task.role, task.index).second)
      return InvalidArgument("task " + name + " is named twice");
  }
  return Status::Ok();
}

}  // namespace shoal::engine
