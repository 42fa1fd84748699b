// `shoal-task`: the part of `shoal` that runs in other people's images, linked statically: the
// launcher, the coordinator, the trainers and what these start. Started by engines (docker), not by
// people. It has its own list of commands, so that the linker leaves the rest away.
#include "cli/commands.h"
#include "cli/install.h"
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
      {"prepare", "", AddPrepare, WordsBeforeCommand},
      {"mpi-worker", "", AddMpiWorker},
      {"mpi-agent", "", AddMpiAgent, WordsBeforeCommand},
      {"enter", "", AddEnter, WordsBeforeCommand},
      {"install", "", AddInstall},
  };
  return commands;
}

}  // namespace shoal::cli

int main(int argc, char** argv) { return shoal::cli::Main(argc, argv); }
