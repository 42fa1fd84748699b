// `shoal marathon health DIR ROLE`: the command of Marathon's health checks, run in each Mesos task
// of a role (ADR 108). Its exit code is the result of the role's `health` check while the program
// runs. In all other states (no program, an ended program, a stopping job) the task is healthy: the
// coordinator decides about those.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>

#include "base/file.h"
#include "engine/agent/desired_state.h"
#include "engine/exec/local_exec.h"
#include "engine/marathon/marathon_helper.h"
#include "host/cgroup/cgroup.h"
#include "host/process/process_usage.h"
#include "job/execution/job_dir.h"
#include "job/spec/json.h"

namespace shoal::engine::marathon {
namespace {

using std::chrono::milliseconds;

constexpr int kWell = 0;
constexpr int kIll = 1;
constexpr size_t kMaxJob = size_t{16} << 20;
constexpr size_t kMostAnswer = 4096;  // enough for the status line
constexpr int kLeastGood = 200;
constexpr int kMostGood = 399;

struct ProbeResult {
  std::string job_id;
  std::string role;
  int index = 0;
  job::Health how;
};

// The index of the task that this Mesos task runs; nothing if it runs none.
std::optional<int> RunningIndex(const std::string& job_dir, const std::string& role,
                                const DesiredState& orders, const std::string& mesos_task) {
  for (const AgentTask& ordered : orders.tasks) {
    if (ordered.task.role != role) continue;
    AgentEventReader reader(SlotPath(job_dir, role, ordered.task.index));
    std::optional<AgentEvent> last;
    for (auto lines = reader.Read(); lines.ok() && !lines->empty(); lines = reader.Read())
      last = std::move(lines->back());
    if (!last || last->kind != EventKind::kTask || last->node != mesos_task) continue;
    if (last->event.phase == TaskPhase::kRunning) return ordered.task.index;
  }
  return std::nullopt;
}

Result<job::Health> HealthOf(const std::string& job_dir, const std::string& role) {
  TRY_ASSIGN(const std::string text, ReadFile(job::JobDir(job_dir).job(), kMaxJob));
  TRY_ASSIGN(const job::Job job, job::FromJsonText(text));
  const job::Role* const found = job.FindRole(role);
  return found == nullptr ? job::Health() : found->health;
}

milliseconds RunsFor(uint64_t start_ticks) {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto hertz = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  const int64_t since = now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
  return milliseconds(since - static_cast<int64_t>(start_ticks * 1000 / hertz));
}

// "web-ui" → SHOAL_PORT_WEB_UI
std::string PortVariable(const std::string& name) {
  std::string variable = "SHOAL_PORT_";
  for (const char c : name)
    variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

// Sends a GET and returns the status line.
Status AskHttp(int socket, const std::string& path) {
  TRY(WriteAll(socket, "GET " + path +
                           " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: shoal\r\n"
                           "Accept: */*\r\nConnection: close\r\n\r\n"));
  std::string answer;
  while (answer.size() < kMostAnswer && answer.find('\n') == std::string::npos) {
    char bytes[512];
    const ssize_t got = ::read(socket, bytes, sizeof bytes);
    if (got <= 0) break;
    answer.append(bytes, static_cast<size_t>(got));
  }
  const std::string line = answer.substr(0, answer.find_first_of("\r\n"));
  const size_t blank = line.find(' ');
  const int code = line.starts_with("HTTP/1.") && blank != std::string::npos
                       ? std::atoi(line.c_str() + blank)
                       : 0;
  if (code >= kLeastGood && code <= kMostGood) return Status::Ok();
  return Unavailable("GET " + path + " was answered with '" + line + "', expected 200 to 399");
}

Status AskPort(const ProbeResult& asked, pid_t program) {
  const std::string variable = PortVariable(asked.how.port);
  TRY_ASSIGN(const std::string text, host::ReadProcessVariable(program, variable.c_str()));
  const int port = std::atoi(text.c_str());
  if (port <= 0 || port > UINT16_MAX)
    return Unavailable(variable + " of the program is '" + text + "', expected a port");
  TRY_ASSIGN(const UniqueFd socket,
             DialLocally(asked.job_id, asked.role, asked.index, static_cast<uint16_t>(port)));
  return asked.how.by == job::ReadyBy::kHttp ? AskHttp(socket.get(), asked.how.path) : Status::Ok();
}

Status AskCommand(const ProbeResult& asked) {
  ExecSpec spec;
  spec.argv = asked.how.command;
  TRY_ASSIGN(const auto execution,
             ExecLocally(asked.job_id, asked.role, asked.index, spec, host::FindCgroups().Bases()));
  TRY_ASSIGN(const ExecEnd end, execution->Wait());
  if (end.signal == 0 && end.exit_code == 0) return Status::Ok();
  return Unavailable(asked.how.command[0] +
                     (end.signal != 0 ? " ended by signal " + std::to_string(end.signal)
                                      : " exited with " + std::to_string(end.exit_code)));
}

// Checks a running program. A program that ends during the check counts as healthy.
Status Ask(const ProbeResult& asked) {
  const auto program = FindTaskProgram(asked.job_id, asked.role, asked.index);
  if (!program.ok() || RunsFor(program->start_ticks) < asked.how.grace) return Status::Ok();
  // A hanging check is ended by SIGALRM, which counts as a failure.
  ::alarm(static_cast<unsigned>(
      std::max<int64_t>(1, std::chrono::ceil<std::chrono::seconds>(asked.how.timeout).count())));
  Status said =
      asked.how.by == job::ReadyBy::kCommand ? AskCommand(asked) : AskPort(asked, program->pid);
  ::alarm(0);
  const auto now = FindTaskProgram(asked.job_id, asked.role, asked.index);
  const bool same =
      now.ok() && now->pid == program->pid && now->start_ticks == program->start_ticks;
  return same ? said : Status::Ok();
}

}  // namespace

Result<int> RunHealth(const std::string& job_dir, const std::string& role) {
  const char* const mesos_task = std::getenv("MESOS_TASK_ID");
  const auto orders = ReadDesiredState(job_dir);
  if (!orders.ok() || orders->stop || mesos_task == nullptr) return kWell;
  const auto index = RunningIndex(job_dir, role, *orders, mesos_task);
  if (!index) return kWell;
  const auto how = HealthOf(job_dir, role);
  if (!how.ok() || how->by == job::ReadyBy::kStart) return kWell;
  const Status said = Ask({orders->job_id, role, *index, *how});
  if (said.ok()) return kWell;
  const std::string text =
      role + "-" + std::to_string(*index) + " is not well: " + said.message() + "\n";
  (void)WriteAll(STDERR_FILENO, text);
  return kIll;
}

}  // namespace shoal::engine::marathon
