// `shoal-task`: the part of `shoal` that runs inside the images of jobs, linked statically:
// launcher, coordinator, trainers and the programs these start. Started by engines. Slurm's engine
// uses it for its agent and the tasks of steps, since it starts twice as fast (ADR 88). It has its
// own command table, so that the linker omits the rest.
#include "base/stack.h"
#include "cli/commands/commands.h"
#include "cli/internal/internal_commands.h"
#include "cli/main.h"

namespace shoal::cli {

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"version", "Machine", AddVersion},
      {"coordinator", "", AddCoordinator},
      {"task", "", AddTask},
      {"learn", "", AddLearn},
      {"ps-server", "", AddPsServer},
      {"rabit-tracker", "", AddRabitTracker},
      {"horovod-rendezvous", "", AddHorovodRendezvous},
      {"prepare", "", AddPrepare, CountArgsBeforeCommand},
      {"mpi-worker", "", AddMpiWorker},
      {"mpi-agent", "", AddMpiAgent, CountArgsBeforeCommand},
      {"enter", "", AddEnter, CountArgsBeforeCommand},
      {"install", "", AddInstall},
      {"data", "", AddTaskData},
      {"slurm", "", AddSlurm, [](int /*argc*/, const char* const* /*argv*/) { return 2; }},
  };
  return commands;
}

}  // namespace shoal::cli

int main(int argc, char** argv) {
  return shoal::RunWithStack([&] { return shoal::cli::Main(argc, argv); });
}
