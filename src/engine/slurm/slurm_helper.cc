#include "engine/slurm/slurm_helper.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/exec/local_exec.h"
#include "engine/exec/stream_pump.h"
#include "engine/tasks/job_files.h"
#include "engine/tasks/restart_rules.h"
#include "host/cgroup/cgroup.h"

namespace shoal::engine::slurm {
namespace {

// Exit code of a command that could not be started, as in shells.
constexpr int kCannotRun = 126;

Result<int> ToNumber(const std::string& word, int most) {
  int value = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || rest != word.data() + word.size() || value < 0 || value > most)
    return InvalidArgument("got \"" + word + "\", expected a number from 0 to " +
                           std::to_string(most));
  return value;
}

Status Usage() {
  return InvalidArgument(
      "shoal slurm is started by the Slurm engine: agent DIR [AHEAD], step FILE [NUMBER], exec JOB "
      "ROLE INDEX -- "
      "COMMAND, pipe JOB ROLE INDEX PORT");
}

// JOB ROLE INDEX [--env NAME=VALUE]… -- COMMAND…
Result<int> RunExec(const std::vector<std::string>& words) {
  const auto mark = std::find(words.begin(), words.end(), "--");
  if (words.size() < 5 || mark == words.end()) return Usage();
  TRY_ASSIGN(const int index, ToNumber(words[3], job::kMaxTasks));
  ExecSpec spec;
  for (auto word = words.begin() + 4; word != mark; ++word) {
    if (*word == "--env" && word + 1 != mark) spec.env.push_back(*++word);
  }
  spec.argv.assign(mark + 1, words.end());
  auto started = ExecLocally(words[1], words[2], index, spec, host::FindCgroups().Bases());
  if (!started.ok()) {
    (void)WriteAll(STDERR_FILENO, "shoal: " + started.status().message() + "\n");
    return kCannotRun;
  }
  auto end = (*started)->Wait();
  if (!end.ok()) return end.status();
  return end->signal != 0 ? 128 + end->signal : end->exit_code;
}

// JOB ROLE INDEX PORT
Result<int> RunPipe(const std::vector<std::string>& words) {
  if (words.size() != 5) return Usage();
  TRY_ASSIGN(const int index, ToNumber(words[3], job::kMaxTasks));
  TRY_ASSIGN(const int port, ToNumber(words[4], UINT16_MAX));
  const auto socket = DialLocally(words[1], words[2], index, static_cast<uint16_t>(port));
  if (!socket.ok()) {
    TRY(WriteAll(STDOUT_FILENO, kPipeRefused + socket.status().message()));
    return 1;
  }
  TRY(WriteAll(STDOUT_FILENO, kPipeOpen));
  PumpThrough(socket->get(), STDIN_FILENO, STDOUT_FILENO);
  return 0;
}

}  // namespace

Result<int> RunHelper(const std::vector<std::string>& words) {
  (void)::signal(SIGPIPE, SIG_IGN);
  if (words.size() == 2 && words[0] == "agent") return RunAgent(words[1], std::nullopt);
  if (words.size() == 3 && words[0] == "agent") {
    TRY_ASSIGN(const int ahead, ToNumber(words[2], INT32_MAX));
    return RunAgent(words[1], std::chrono::seconds(ahead));
  }
  if ((words.size() == 2 || words.size() == 3) && words[0] == "step")
    return RunStepTask(words[1], words.size() == 3 ? words[2] : "");
  if (!words.empty() && words[0] == "exec") return RunExec(words);
  if (!words.empty() && words[0] == "pipe") return RunPipe(words);
  return Usage();
}

std::string FindStaticTwin(const std::string& program) {
  const std::filesystem::path twin = std::filesystem::path(program).parent_path() / "shoal-task";
  return ::access(twin.c_str(), X_OK) == 0 ? twin.string() : program;
}

std::filesystem::path AgentEventsPath(const std::string& job_dir) {
  return EngineDir(job_dir) / "events.jsonl";
}

std::filesystem::path AllocationPath(const std::string& job_dir) {
  return EngineDir(job_dir) / "slurm.json";
}

std::filesystem::path BatchScriptPath(const std::string& job_dir) {
  return EngineDir(job_dir) / "batch.sh";
}

Status WriteAllocation(const std::string& job_dir, const Allocation& allocation) {
  const json::object object{
      {"version", 1}, {"job", allocation.number}, {"attended", allocation.attended}};
  return WriteFileAtomically(AllocationPath(job_dir), ToText(object) + "\n", 0600, false);
}

Allocation ReadAllocation(const std::string& job_dir) {
  constexpr size_t kMaxFile = 4096;
  const FileAccessAs owner(job_dir);
  const auto text = ReadFile(AllocationPath(job_dir), kMaxFile);
  if (!text.ok()) return {};
  const auto object = ParseJsonObject(*text);
  if (!object.ok()) return {};
  return {std::max<int64_t>(0, GetIntOr(*object, "job", 0)), GetBoolOr(*object, "attended", false)};
}

std::filesystem::path AgentLogPath(const std::string& job_dir) {
  return EngineDir(job_dir) / "slurm.log";
}

std::vector<std::string> WithoutSlurm(const std::vector<std::string>& environment) {
  static constexpr std::string_view kTaken[] = {"SLURM", "SBATCH_", "SRUN_", "PMI_", "PMIX_"};
  std::vector<std::string> kept;
  for (const std::string& entry : environment) {
    const bool taken =
        std::any_of(std::begin(kTaken), std::end(kTaken),
                    [&](std::string_view prefix) { return entry.starts_with(prefix); });
    if (!taken || entry.starts_with("SLURM_TMPDIR=")) kept.push_back(entry);
  }
  return kept;
}

}  // namespace shoal::engine::slurm
