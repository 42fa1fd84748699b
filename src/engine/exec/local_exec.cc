#include "engine/exec/local_exec.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <tuple>

#include "engine/process/task_process.h"
#include "host/network/port_lease.h"
#include "host/process/enter_process.h"
#include "host/process/process_usage.h"

namespace shoal::engine {
namespace {

// Set in commands: they have the program's environment, but must not be taken for the task's
// program.
constexpr const char* kExecVariable = "SHOAL_EXEC";

// A running program of a task.
struct Program {
  pid_t pid = 0;
  uint64_t start_ticks = 0;
  int attempt = -1;
};

std::string Name(const std::string& role, int index) { return role + "-" + std::to_string(index); }

// The first process of the task's latest attempt.
Result<Program> FindProgram(const std::string& job_id, const std::string& role, int index) {
  const auto is = [](pid_t pid, const char* name, const std::string& value) {
    const auto found = host::ReadProcessVariable(pid, name);
    return found.ok() && *found == value;
  };
  Program best;
  for (const pid_t pid : host::ProcessesWithVariable(kJobVariable, job_id)) {
    if (!is(pid, "SHOAL_ROLE", role) || !is(pid, "SHOAL_INDEX", std::to_string(index))) continue;
    if (host::ReadProcessVariable(pid, kExecVariable).ok()) continue;
    const auto attempt = host::ReadProcessVariable(pid, "SHOAL_ATTEMPT");
    const auto stat = host::ReadProcessStat(pid);
    if (!attempt.ok() || !stat.ok() || stat->state == 'Z') continue;
    const Program one{pid, stat->start_ticks, std::atoi(attempt->c_str())};
    const bool better = one.attempt > best.attempt ||
                        (one.attempt == best.attempt &&
                         std::tie(one.start_ticks, one.pid) < std::tie(best.start_ticks, best.pid));
    if (better) best = one;
  }
  if (best.pid == 0)
    return NotFound("no program of " + Name(role, index) + " of job " + job_id +
                    " runs here now; `shoal show " + job_id + "` says how its tasks are");
  return best;
}

// A command in a task on this machine.
class LocalExecution final : public Execution {
 public:
  explicit LocalExecution(std::unique_ptr<host::EnteredCommand> entered)
      : entered_(std::move(entered)) {}
  void Signal(int signal) override { entered_->Signal(signal); }
  void Resize(uint16_t rows, uint16_t columns) override { entered_->Resize(rows, columns); }
  Result<ExecEnd> Wait() override {
    TRY_ASSIGN(const host::EnteredCommandEnd end, entered_->Wait());
    return ExecEnd{end.exit_code, end.signal};
  }

 private:
  const std::unique_ptr<host::EnteredCommand> entered_;
};

Result<UniqueFd> ConnectTo(int family, const void* address, uint32_t size) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot make a socket");
  while (::connect(fd.get(), static_cast<const sockaddr*>(address), size) != 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "cannot connect");
  }
  return fd;
}

}  // namespace

// The address at which this machine reaches a listener of this address.
Result<UniqueFd> ConnectToListener(const std::string& address, uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  const bool any6 = address == "::" || address == "[::]";
  const std::string numeric = address == "0.0.0.0" || any6 ? "127.0.0.1" : address;
  if (::inet_pton(AF_INET, numeric.c_str(), &v4.sin_addr) == 1) {
    auto fd = ConnectTo(AF_INET, &v4, sizeof v4);
    if (fd.ok() || !any6) return fd;
    v6.sin6_addr = in6addr_loopback;
    return ConnectTo(AF_INET6, &v6, sizeof v6);
  }
  std::string bare = numeric;
  if (bare.starts_with('[') && bare.ends_with(']')) bare = bare.substr(1, bare.size() - 2);
  if (::inet_pton(AF_INET6, bare.c_str(), &v6.sin6_addr) != 1)
    return Unavailable("it listens at " + address);
  return ConnectTo(AF_INET6, &v6, sizeof v6);
}

Result<std::unique_ptr<Execution>> ExecLocally(
    const std::string& job_id, const std::string& role, int index, const ExecSpec& spec,
    const std::vector<std::filesystem::path>& group_bases) {
  if (spec.argv.empty() || spec.argv[0].empty())
    return InvalidArgument("got no command to run in the task");
  TRY_ASSIGN(const Program program, FindProgram(job_id, role, index));
  host::EnterSpec enter;
  enter.pid = program.pid;
  enter.start_ticks = program.start_ticks;
  enter.argv = spec.argv;
  enter.env = spec.env;
  enter.env.push_back(std::string(kExecVariable) + "=1");
  enter.group_directories = host::FindGroupsOfProcess(group_bases, job_id, program.pid);
  enter.terminal = spec.terminal;
  enter.rows = spec.rows;
  enter.columns = spec.columns;
  std::copy(std::begin(spec.fds), std::end(spec.fds), std::begin(enter.fds));
  TRY_ASSIGN(auto entered, host::EnteredCommand::Start(enter));
  return std::unique_ptr<Execution>(std::make_unique<LocalExecution>(std::move(entered)));
}

Result<UniqueFd> DialLocally(const std::string& job_id, const std::string& role, int index,
                             uint16_t port) {
  TRY_ASSIGN(const Program program, FindProgram(job_id, role, index));
  std::vector<pid_t> tree = host::Descendants(program.pid);
  tree.push_back(program.pid);
  for (const host::Listener& listener : host::FindListeners(port, tree)) {
    if (std::find(tree.begin(), tree.end(), listener.pid) == tree.end()) continue;
    auto fd = ConnectToListener(listener.address, port);
    if (!fd.ok())
      return fd.status().With("port " + std::to_string(port) + " of " + Name(role, index));
    return fd;
  }
  return Unavailable("no process of " + Name(role, index) + " listens on port " +
                     std::to_string(port));
}

Result<TaskProgram> FindTaskProgram(const std::string& job_id, const std::string& role, int index) {
  TRY_ASSIGN(const Program program, FindProgram(job_id, role, index));
  return TaskProgram{program.pid, program.start_ticks};
}

void KillEarlierIncarnations(const std::string& job_id, const std::string& role, int index,
                             int incarnation) {
  constexpr int kLooks = 200;  // 10 ms apart
  const std::string prefix = role + "/" + std::to_string(index) + "/";
  const std::string ours = TaskVariable(role, index, incarnation);
  for (int look = 0; look < kLooks; ++look) {
    bool any = false;
    for (const pid_t pid : host::ProcessesWithVariable(kJobVariable, job_id)) {
      const auto task = host::ReadProcessVariable(pid, kTaskVariable);
      if (!task.ok() || !task->starts_with(prefix) || *task == ours) continue;
      any = host::KillProcess(pid, 0) || any;
    }
    if (!any) return;
    ::poll(nullptr, 0, 10);
  }
}

}  // namespace shoal::engine
