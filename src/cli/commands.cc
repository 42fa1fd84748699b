#include "cli/commands.h"

namespace shoal::cli {

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"train", "Train", AddTrain},
      {"run", "Jobs", AddRun},
      {"plan", "Jobs", AddPlan},
      {"import", "Jobs", AddImport},
      {"submit-dmlc", "Jobs", AddSubmitDmlc, DmlcOwnWords},
      {"jobs", "Jobs", AddJobs},
      {"show", "Jobs", AddShow},
      {"logs", "Jobs", AddLogs},
      {"stop", "Jobs", AddStop},
      {"tables", "Jobs", AddTables},
      {"ps-server", "Jobs", AddPsServer},
      {"nearest", "Models", AddNearest},
      {"analogy", "Models", AddAnalogy},
      {"evaluate", "Models", AddEvaluate},
      {"predict", "Models", AddPredict},
      {"doctor", "Machine", AddDoctor},
      {"completion", "Machine", AddCompletion},
      {"version", "Machine", AddVersion},
      {"coordinator", "", AddCoordinator},
      {"task", "", AddTask},
      {"learn", "", AddLearn},
  };
  return commands;
}

}  // namespace shoal::cli
