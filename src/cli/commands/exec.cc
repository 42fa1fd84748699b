// `shoal exec JOB TASK -- COMMAND…`: runs a command in a running task, with its files, environment,
// limits and namespaces.

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <thread>

#include "cli/commands/commands.h"
#include "cli/jobs/open_jobs.h"
#include "cli/jobs/task_name.h"
#include "cli/terminal/report.h"
#include "cli/terminal/stop_signals.h"
#include "net/event_loop.h"

namespace shoal::cli {
namespace {

struct ExecArguments {
  std::string job;
  std::string task;
  bool no_terminal = false;
};

// Puts the terminal into raw mode: keys, including Ctrl-C, go to the command unchanged. Restored by
// the destructor.
class RawTerminal {
 public:
  explicit RawTerminal(bool raw) : raw_(raw && ::tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!raw_) return;
    termios changed = before_;
    ::cfmakeraw(&changed);
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &changed);
  }
  ~RawTerminal() {
    if (raw_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }

 private:
  termios before_{};
  const bool raw_;
};

void ReadSize(engine::ExecSpec* spec) {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return;
  spec->rows = size.ws_row;
  spec->columns = size.ws_col;
}

// Forwards this process's signals to the command until it has ended.
class Signals {
 public:
  explicit Signals(engine::Execution* execution) {
    for (const int signal : WithoutIgnored({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}))
      loop_.WatchSignal(signal, [execution, signal] { execution->Signal(signal); });
    loop_.WatchSignal(SIGWINCH, [execution] {
      engine::ExecSpec size;
      ReadSize(&size);
      execution->Resize(size.rows, size.columns);
    });
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~Signals() {
    loop_.Stop();
    thread_.join();
  }

 private:
  net::Loop loop_;
  std::thread thread_;
};

Result<engine::ExecEnd> RunInTask(const Context& context, const ExecArguments& arguments) {
  TRY_ASSIGN(const NamedTask task, ParseTaskName(arguments.task));
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  TRY_ASSIGN(const controller::JobView job, jobs->Find(arguments.job));
  engine::ExecSpec spec;
  spec.argv = context.passthrough_args;
  spec.terminal =
      !arguments.no_terminal && ::isatty(STDIN_FILENO) == 1 && context.stdout_is_terminal;
  ReadSize(&spec);
  if (const char* term = std::getenv("TERM"); spec.terminal && term != nullptr)
    spec.env.push_back(std::string("TERM=") + term);
  TRY_ASSIGN(const std::unique_ptr<engine::Execution> execution,
             jobs->Exec(job.record.id, task.role, task.index, spec));
  const Signals signals(execution.get());
  const RawTerminal raw(spec.terminal);
  return execution->Wait();
}

int Exec(const Context& context, const ExecArguments& arguments) {
  if (context.passthrough_args.empty())
    return PrintError(InvalidArgument("got no command, expected `shoal exec JOB TASK -- COMMAND`"));
  const Result<engine::ExecEnd> end = RunInTask(context, arguments);
  if (!end.ok()) return PrintError(end.status());
  return end->signal != 0 ? 128 + end->signal : end->exit_code;
}

constexpr const char* kExecFooter = R"help(Examples:
  shoal exec mnist worker-1 -- bash                 a shell in the task
  shoal exec mnist worker-1 -- sh -c 'py-spy dump --pid $SHOAL_PID'
  shoal exec mnist worker -- nvidia-smi | head      worker means worker-0

The command gets the working directory, environment, limits and namespaces of the task's program;
$SHOAL_PID is the program's process ID there. The exit code is the command's, or 128 plus the number
of the signal that ended it. The command is killed when the task's program ends.)help";

}  // namespace

void AddExec(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<ExecArguments>();
  CLI::App* sub =
      app.add_subcommand("exec", "Run a command in a running task: shoal exec JOB TASK -- COMMAND");
  sub->add_option("JOB", arguments->job, "Name of the job, or an unambiguous prefix")->required();
  sub->add_option("TASK", arguments->task, "Task, for example worker-0")->required();
  sub->add_flag("-T,--no-terminal", arguments->no_terminal, "Run the command without a terminal");
  sub->footer(kExecFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return Exec(context, *arguments); };
  });
}

}  // namespace shoal::cli
