#include "rendezvous/launcher/task_environment.h"

#include <unistd.h>

#include "framework/framework_environment.h"
#include "job/execution/job_dir.h"
#include "rendezvous/launcher/program.h"

namespace shoal::rendezvous {
namespace {

// Variables that the engine's own objects set, and injected faults, which are the launcher's.
// Programs that find JOB_COMPLETION_INDEX would take themselves for part of a Kubernetes Indexed
// Job, which every Shoal pod is.
constexpr std::string_view kNotInherited[] = {"JOB_COMPLETION_INDEX", "SHOAL_FAULTS",
                                              "SHOAL_SIGNALS_ALL"};

std::string WithOutput(std::string text, const std::string& output) {
  for (size_t at = 0; (at = text.find(kOutputMark, at)) != std::string::npos; at += output.size())
    text.replace(at, kOutputMark.size(), output);
  return text;
}

}  // namespace

TaskEnvironment& TaskEnvironment::Inherit(const char* const* environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view text(*environment);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    bool left_out = false;
    for (const std::string_view one : kNotInherited) left_out = left_out || name == one;
    if (!left_out) variables_[std::string(name)] = text.substr(equals + 1);
  }
  return *this;
}

TaskEnvironment& TaskEnvironment::AddDefaults() {
  variables_["TMPDIR"] = paths_.scratch;
  return *this;
}

TaskEnvironment& TaskEnvironment::AddVariables(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  for (const auto& [name, value] : variables) variables_[name] = WithOutput(value, paths_.output);
  return *this;
}

TaskEnvironment& TaskEnvironment::AddAttempt() {
  variables_["SHOAL_TOKEN_FILE"] = job::JobDir(paths_.job_dir).token().string();
  variables_["SHOAL_JOB_DIR"] = paths_.job_dir;
  variables_["SHOAL_SCRATCH"] = paths_.scratch;
  SetHome();
  // A Shoal trainer (SHOAL_LEARN) without outputs writes none.
  if (!paths_.output.empty() && !variables_.contains("SHOAL_LEARN"))
    variables_.try_emplace("SHOAL_OUTPUT", paths_.output);
  variables_["SHOAL_CLUSTER_FILE"] = paths_.cluster_file;
  variables_["SHOAL_REPORT_FD"] = std::to_string(kReportFd);
  constexpr std::string_view kCluster = "SHOAL_CLUSTER=";
  if (kCluster.size() + paths_.cluster.size() + 1 <= framework::kMaxVariableBytes) {
    variables_["SHOAL_CLUSTER"] = paths_.cluster;
  }
  return *this;
}

std::vector<std::string> TaskEnvironment::Build() const {
  std::vector<std::string> list;
  list.reserve(variables_.size());
  for (const auto& [name, value] : variables_) list.push_back(name + "=" + value);
  return list;
}

// In a container whose image does not know the user id, runtimes set the home directory to "/".
// Programs keep caches and settings there.
void TaskEnvironment::SetHome() {
  std::string& home = variables_["HOME"];
  const bool unusable = home.empty() || (home == "/" && ::access("/", W_OK) != 0);
  if (unusable) home = paths_.scratch;
}

std::vector<std::string> BuildTaskEnvironment(
    const StartMessage& start, const std::vector<std::pair<std::string, std::string>>& process,
    const AttemptPaths& paths) {
  return TaskEnvironment(paths)
      .Inherit(environ)
      .AddDefaults()
      .AddVariables(start.env)
      .AddVariables(process)
      .AddAttempt()
      .Build();
}

}  // namespace shoal::rendezvous
