// `shoal mpi-worker`, the program of role `worker` in a job of framework mpi, and `shoal
// mpi-agent`, which mpirun calls in place of rsh (docs/adr/0070) and scripts of the launcher in
// place of ssh (docs/adr/0430). Started by Shoal and by mpirun; hidden from --help.
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/log.h"
#include "cli/internal/internal_commands.h"
#include "cli/terminal/report.h"
#include "host/process/isolation.h"
#include "rendezvous/framework_services/mpi_launch.h"
#include "rendezvous/framework_services/remote_shell.h"
#include "rendezvous/protocol/coordinator_connection.h"

namespace shoal::cli {
namespace {

constexpr size_t kMostCluster = size_t{64} << 20;
constexpr int kPatienceMs = 2000;
constexpr int kNoConnection = 255;  // ssh's exit code for its own errors

Result<std::string> TaskVariable(const char* name) {
  const char* value = std::getenv(name);
  if (value != nullptr) return std::string(value);
  return InvalidArgument("this runs in the tasks of a job of framework mpi: " + std::string(name) +
                         " is not set");
}

Status Serve(rendezvous::RemoteShellServerOptions options) {
  SetLogName("mpi-worker");
  TRY_ASSIGN(const std::string job_dir, TaskVariable("SHOAL_JOB_DIR"));
  TRY_ASSIGN(options.token, rendezvous::ReadTokenFile(job_dir));
  options.env = rendezvous::MpiDaemonEnvironment(environ);
  options.isolation.tree = host::ProbeIsolation().tree;
  return rendezvous::RunRemoteShellServer(std::move(options));
}

Result<rendezvous::RemoteCommandSpec> FindCommand(const std::vector<std::string>& words) {
  TRY_ASSIGN(const std::string file, TaskVariable("SHOAL_CLUSTER_FILE"));
  TRY_ASSIGN(const std::string cluster, ReadFile(file, kMostCluster));
  return rendezvous::FindMpiHost(words, cluster);
}

Result<rendezvous::RemoteCommandEnd> RunOnHost(rendezvous::RemoteCommandSpec command) {
  TRY_ASSIGN(const std::string job_dir, TaskVariable("SHOAL_JOB_DIR"));
  TRY_ASSIGN(command.token, rendezvous::ReadTokenFile(job_dir));
  return rendezvous::RunRemoteCommand(command);
}

// MPICH's mpiexec waits forever for a daemon that could not be started and for ranks that wait for
// one that has exited; Open MPI's mpirun ends by itself. mpiexec also waits for this process, so a
// child of it ends the parent.
void EndWaitingParent() {
  const pid_t parent = ::getppid();
  std::error_code error;
  const std::filesystem::path link = "/proc/" + std::to_string(parent) + "/exe";
  const std::string program = std::filesystem::read_symlink(link, error).filename().string();
  if (error || program.find("hydra") == std::string::npos) return;
  const UniqueFd watched(static_cast<int>(::syscall(SYS_pidfd_open, parent, 0)));
  if (!watched.valid() || ::getppid() != parent || ::fork() != 0) return;
  ::setsid();
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
  pollfd ended{watched.get(), POLLIN, 0};
  if (::poll(&ended, 1, kPatienceMs) == 0)
    ::syscall(SYS_pidfd_send_signal, watched.get(), SIGKILL, nullptr, 0);
  ::_exit(0);
}

int RunAndReport(const rendezvous::RemoteCommandSpec& command) {
  const auto end = RunOnHost(command);
  if (!end.ok()) return PrintError(end.status());
  return end->signal != 0 ? 128 + end->signal : end->exit_code;
}

int Agent(const std::vector<std::string>& words) {
  const auto command = FindCommand(words);
  const int code = command.ok() ? RunAndReport(*command) : PrintError(command.status());
  if (code != 0) EndWaitingParent();
  return code;
}

// True for standard input that a program would read data from.
bool HasInput() {
  struct stat input {};
  if (::fstat(STDIN_FILENO, &input) != 0) return false;
  return S_ISFIFO(input.st_mode) || S_ISSOCK(input.st_mode) ||
         (S_ISREG(input.st_mode) && input.st_size > 0);
}

// Hosts that are no tasks of the job are reached by the machine's own ssh.
int Ssh(std::vector<std::string> words) {
  const auto command = FindCommand(words);
  if (command.ok()) {
    if (HasInput() && std::find(words.begin(), words.end(), "-n") == words.end()) {
      PrintNote("ssh " + command->name +
                ": standard input is not sent to the command; ssh -n leaves it to others");
    }
    return RunAndReport(*command);
  }
  const char* const path = std::getenv("PATH");
  const char* const own = std::getenv("SHOAL_MPI_BIN");
  const std::filesystem::path other =
      rendezvous::FindOtherProgram("ssh", path == nullptr ? "" : path, own == nullptr ? "" : own);
  const bool elsewhere =
      command.status().code() == Code::kNotFound || rendezvous::HostOfRshLine(words).empty();
  if (other.empty() || !elsewhere) {
    (void)PrintError(command.status());
    return kNoConnection;
  }
  words.insert(words.begin(), "ssh");
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(other.c_str(), arguments.data());
  (void)PrintError(ErrnoStatus(errno, other.string()));
  return kNoConnection;
}

}  // namespace

void AddMpiWorker(CLI::App& app, Run* chosen) {
  CLI::App* const sub =
      app.add_subcommand("mpi-worker", "Start mpirun's daemons in this task for its launcher");
  const auto options = std::make_shared<rendezvous::RemoteShellServerOptions>();
  sub->add_option("--host", options->host, "IP address to listen on")->envname("SHOAL_MPI_HOST");
  sub->add_option("--port", options->port, "Port to listen on")->envname("SHOAL_PORT_MPI");
  sub->callback([chosen, options] {
    *chosen = [options](const Context& /*context*/) {
      const Status status = Serve(*options);
      return status.ok() ? 0 : PrintError(status);
    };
  });
}

void AddMpiAgent(CLI::App& app, Run* chosen) {
  CLI::App* const sub =
      app.add_subcommand("mpi-agent", "Run a command in a worker's task, in place of rsh");
  const auto ssh = std::make_shared<bool>(false);
  sub->add_flag("--ssh", *ssh, "Reach other hosts by the machine's own ssh");
  sub->callback([chosen, ssh] {
    *chosen = [ssh](const Context& context) {
      return *ssh ? Ssh(context.passthrough_args) : Agent(context.passthrough_args);
    };
  });
}

}  // namespace shoal::cli
