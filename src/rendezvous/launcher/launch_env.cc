#include "rendezvous/launcher/launch_env.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <string_view>

#include "base/file.h"
#include "framework/framework_environment.h"
#include "job/execution/job_dir.h"
#include "rendezvous/launcher/program.h"

namespace shoal::rendezvous {

Status MakeTaskDirectories(const AttemptPaths& paths) {
  TRY(MakeDirectories(paths.scratch, 0700));
  return MakeDirectories(paths.output, 0700);
}

void RemoveTaskDirectories(const AttemptPaths& paths) {
  std::error_code ignored;  // the engine removes the job's directory anyway
  std::filesystem::remove_all(paths.scratch, ignored);
  std::filesystem::remove(paths.cluster_file, ignored);
  std::filesystem::remove(paths.output, ignored);  // if it is empty
}

namespace {

// What an engine's means set in a task's environment beside what the job says: a program that finds
// it takes itself for a part of an Indexed Job of Kubernetes, as all our pods are.
constexpr std::string_view kOfEngine = "JOB_COMPLETION_INDEX=";

std::string WithOutput(std::string text, const std::string& output) {
  for (size_t at = 0; (at = text.find(kOutputMark, at)) != std::string::npos; at += output.size())
    text.replace(at, kOutputMark.size(), output);
  return text;
}

// In a container whose image does not know the user's number, runtimes say that "/" is his home.
// Programs keep caches and settings there.
void GiveHome(const AttemptPaths& paths, std::map<std::string, std::string>* env) {
  std::string& home = (*env)["HOME"];
  const bool unusable = home.empty() || (home == "/" && ::access("/", W_OK) != 0);
  if (unusable) home = paths.scratch;
}

}  // namespace

std::vector<std::string> LaunchEnvironment(
    const StartMessage& start, const std::vector<std::pair<std::string, std::string>>& process,
    const AttemptPaths& paths) {
  std::map<std::string, std::string> env;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text(*one);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || text.starts_with("SHOAL_FAULTS=") ||
        text.starts_with(kOfEngine)) {
      continue;
    }
    env[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  env["TMPDIR"] = paths.scratch;  // the job may have its own
  for (const auto& [name, value] : start.env) env[name] = WithOutput(value, paths.output);
  for (const auto& [name, value] : process) env[name] = WithOutput(value, paths.output);
  env["SHOAL_TOKEN_FILE"] = job::JobDir(paths.job_dir).token().string();
  env["SHOAL_JOB_DIR"] = paths.job_dir;
  env["SHOAL_SCRATCH"] = paths.scratch;
  GiveHome(paths, &env);
  // A trainer of ours (SHOAL_LEARN) without outputs writes none.
  if (!paths.output.empty() && !env.contains("SHOAL_LEARN"))
    env.try_emplace("SHOAL_OUTPUT", paths.output);
  env["SHOAL_CLUSTER_FILE"] = paths.cluster_file;
  env["SHOAL_REPORT_FD"] = std::to_string(kReportFd);
  constexpr std::string_view kCluster = "SHOAL_CLUSTER=";
  if (kCluster.size() + paths.cluster.size() + 1 <= framework::kMaxVariableBytes) {
    env["SHOAL_CLUSTER"] = paths.cluster;
  }
  std::vector<std::string> list;
  for (const auto& [name, value] : env) list.push_back(name + "=" + value);
  return list;
}

}  // namespace shoal::rendezvous
