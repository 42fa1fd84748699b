#include "engine/marathon/marathon_helper.h"

#include <algorithm>
#include <csignal>
#include <string_view>

#include "engine/tasks/job_files.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine::marathon {

Result<int> RunHelper(const std::vector<std::string>& words) {
  (void)::signal(SIGPIPE, SIG_IGN);
  const bool health = words.size() == 3 && words[0] == "health";
  if (words.size() != 3 || (!health && words[0] != "hold"))
    return InvalidArgument("shoal marathon is started by Marathon: hold DIR ROLE, health DIR ROLE");
  TRY(CheckName("role", words[2]));
  return health ? RunHealth(words[1], words[2]) : RunExecutor(words[1], words[2]);
}

std::filesystem::path SlotsDir(const std::string& job_dir) { return EngineDir(job_dir) / "places"; }

std::filesystem::path SlotPath(const std::string& job_dir, const std::string& role, int index) {
  return SlotsDir(job_dir) / (role + "-" + std::to_string(index) + ".jsonl");
}

std::vector<std::string> WithoutMarathon(const std::vector<std::string>& environment) {
  static constexpr std::string_view kTaken[] = {
      "MARATHON_", "MESOS_", "LIBPROCESS_", "PORT=", "PORTS=", "PORT_", "HOST="};
  std::vector<std::string> kept;
  for (const std::string& entry : environment) {
    bool taken = std::any_of(std::begin(kTaken), std::end(kTaken),
                             [&](std::string_view prefix) { return entry.starts_with(prefix); });
    taken = taken ||
            (entry.starts_with("PORT") && entry.size() > 4 && entry[4] >= '0' && entry[4] <= '9');
    if (!taken || entry.starts_with("MESOS_SANDBOX=") || entry.starts_with("MESOS_TASK_ID="))
      kept.push_back(entry);
  }
  return kept;
}

}  // namespace shoal::engine::marathon
