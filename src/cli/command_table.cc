#include "cli/commands/commands.h"
#include "cli/internal/internal_commands.h"

namespace shoal::cli {

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"train", "Train", AddTrain},
      {"run", "Jobs", AddRun},
      {"plan", "Jobs", AddPlan},
      {"schedule", "Jobs", AddSchedule},
      {"import", "Jobs", AddImport},
      {"submit-dmlc", "Jobs", AddSubmitDmlc, CountDmlcOwnArgs},
      {"jobs", "Jobs", AddJobs},
      {"show", "Jobs", AddShow},
      {"logs", "Jobs", AddLogs},
      {"stop", "Jobs", AddStop},
      {"suspend", "Jobs", AddSuspend},
      {"resume", "Jobs", AddResume},
      {"scale", "Jobs", AddScale},
      {"outputs", "Jobs", AddOutputs},
      {"exec", "Jobs", AddExec, CountArgsBeforeCommand},
      {"forward", "Jobs", AddForward},
      {"tables", "Jobs", AddTables},
      {"ps-server", "Jobs", AddPsServer},
      {"rabit-tracker", "Jobs", AddRabitTracker},
      {"horovod-rendezvous", "Jobs", AddHorovodRendezvous},
      {"nearest", "Models", AddNearest},
      {"analogy", "Models", AddAnalogy},
      {"evaluate", "Models", AddEvaluate},
      {"predict", "Models", AddPredict},
      {"doctor", "Machine", AddDoctor},
      {"completion", "Machine", AddCompletion},
      {"version", "Machine", AddVersion},
      {"coordinator", "", AddCoordinator},
      {"task", "", AddTask},
      {"prepare", "", AddPrepare, CountArgsBeforeCommand},
      {"slurm", "", AddSlurm, [](int /*argc*/, const char* const* /*argv*/) { return 2; }},
      {"marathon", "", AddMarathon, [](int /*argc*/, const char* const* /*argv*/) { return 2; }},
      {"mpi-worker", "", AddMpiWorker},
      {"mpi-agent", "", AddMpiAgent, CountArgsBeforeCommand},
      {"learn", "", AddLearn},
      {"enter", "", AddEnter, CountArgsBeforeCommand},
  };
  return commands;
}

}  // namespace shoal::cli
