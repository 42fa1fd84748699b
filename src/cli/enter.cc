// `shoal enter --job J --role R --index N [--env NAME=VALUE…] -- COMMAND…`: becomes a command
// beside a task's program, in its environment and directory. Started by engines inside the task's
// container (`shoal exec`), not by people, hence hidden.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/report.h"
#include "engine/process_exec.h"
#include "net/loop.h"

namespace shoal::cli {
namespace {

struct Arguments {
  std::string job;
  std::string role;
  int index = 0;
  std::vector<std::string> env;
  uint16_t rows = 0;
  uint16_t columns = 0;
};

// Of the terminal, before the command can ask: a daemon makes it without, and says it afterwards.
void SetTerminalSize(const Arguments& arguments) {
  winsize size{};
  if (arguments.rows == 0 || ::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row != 0)
    return;
  size.ws_row = arguments.rows;
  size.ws_col = arguments.columns;
  (void)::ioctl(STDIN_FILENO, TIOCSWINSZ, &size);
}

// Passes what we are told on to the command, from a thread of its own.
class PassSignals {
 public:
  explicit PassSignals(engine::Execution* execution) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      loop_.WatchSignal(signal, [execution, signal] { execution->Signal(signal); });
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~PassSignals() {
    loop_.Stop();
    thread_.join();
  }

 private:
  net::Loop loop_;
  std::thread thread_;
};

int Enter(const Context& context, const Arguments& arguments) {
  SetTerminalSize(arguments);
  engine::ExecSpec spec;
  spec.argv = context.rest;
  spec.env = arguments.env;
  const auto execution =
      engine::ExecLocally(arguments.job, arguments.role, arguments.index, spec, {});
  if (!execution.ok()) return Complain(execution.status());
  const PassSignals signals(execution->get());
  const auto end = (*execution)->Wait();
  if (!end.ok()) return Complain(end.status());
  constexpr int kSignalBase = 128;
  return end->signal != 0 ? kSignalBase + end->signal : end->exit_code;
}

}  // namespace

void AddEnter(CLI::App& app, Run* chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const sub = app.add_subcommand("enter", "Run a command beside a task's program, here");
  sub->add_option("--job", arguments->job, "The job")->required();
  sub->add_option("--role", arguments->role, "The task's role")->required();
  sub->add_option("--index", arguments->index, "The task's index")->required();
  sub->add_option("--env", arguments->env, "A variable over the program's")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  sub->add_option("--rows", arguments->rows, "Of a terminal that has no size yet");
  sub->add_option("--columns", arguments->columns, "Likewise");
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return Enter(context, *arguments); };
  });
}

}  // namespace shoal::cli
