// `shoal enter --job J --role R --index N [--terminal] [--env NAME=VALUE…] -- COMMAND…`: runs a
// command in the environment and directory of a task's program for a remote caller (`shoal exec`).
// Engines start it inside the task's container; hidden from --help. Its input and error stream
// carry frames (engine/exec_frames.h).
#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>

#include "cli/internal/internal_commands.h"
#include "cli/terminal/report.h"
#include "engine/exec/exec_server.h"
#include "engine/exec/local_exec.h"

namespace shoal::cli {
namespace {

struct EnterArguments {
  std::string job;
  std::string role;
  int index = 0;
  engine::ExecSpec spec;
};

int Enter(const Context& context, const EnterArguments& arguments) {
  (void)::signal(SIGPIPE, SIG_IGN);
  engine::ExecSpec spec = arguments.spec;
  spec.argv = context.passthrough_args;
  const auto end =
      engine::ServeExec(spec, engine::ExecServerStreams(), [&](const engine::ExecSpec& ready) {
        return engine::ExecLocally(arguments.job, arguments.role, arguments.index, ready, {});
      });
  if (!end.ok()) return ExitCodeOf(end.status().code());  // already reported to the caller
  constexpr int kSignalBase = 128;
  return end->signal != 0 ? kSignalBase + end->signal : end->exit_code;
}

}  // namespace

void AddEnter(CLI::App& app, Run* chosen) {
  const auto arguments = std::make_shared<EnterArguments>();
  engine::ExecSpec& spec = arguments->spec;
  CLI::App* const sub =
      app.add_subcommand("enter", "Run a command in the namespaces of a task's program");
  sub->add_option("--job", arguments->job, "The job")->required();
  sub->add_option("--role", arguments->role, "The task's role")->required();
  sub->add_option("--index", arguments->index, "The task's index")->required();
  sub->add_option("--env", spec.env, "Variable that overrides the program's")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  sub->add_flag("--terminal", spec.terminal, "Give the command a terminal of its own");
  sub->add_option("--rows", spec.rows, "Of the terminal");
  sub->add_option("--columns", spec.columns, "Likewise");
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return Enter(context, *arguments); };
  });
}

}  // namespace shoal::cli
