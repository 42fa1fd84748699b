#include "cli/jobs/task_name.h"

#include <algorithm>
#include <charconv>

namespace shoal::cli {

Result<NamedTask> ParseTaskName(const std::string& text) {
  const auto letter = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  if (text.empty() || text.size() > 80 || !std::all_of(text.begin(), text.end(), letter))
    return InvalidArgument("got the task \"" + text + "\", expected a name such as worker-0");
  NamedTask task{text, 0};
  const size_t dash = text.rfind('-');
  if (dash == std::string::npos || dash == 0 || dash + 1 == text.size()) return task;
  int index = 0;
  const auto [end, error] =
      std::from_chars(text.data() + dash + 1, text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size()) return task;
  task.role = text.substr(0, dash);
  task.index = index;
  return task;
}

}  // namespace shoal::cli
