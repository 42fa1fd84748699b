#include "cli/catalog/catalog_commands.h"
#include "cli/commands/commands.h"
#include "cli/internal/internal_commands.h"
#include "cli/models/model_commands.h"
#include "cli/sql/sql_commands.h"

namespace shoal::cli {
namespace {

std::vector<Command> CommandsForPeople() {
  return {
      {"train", "Train", AddTrain},
      {"sql", "Train", AddSql},
      {"run", "Jobs", AddRun, nullptr, true},
      {"submit", "Jobs", AddSubmit, nullptr, true},
      {"plan", "Jobs", AddPlan},
      {"schedule", "Jobs", AddSchedule},
      {"import", "Jobs", AddImport},
      {"submit-dmlc", "Jobs", AddSubmitDmlc, CountDmlcOwnArgs},
      {"jobs", "Jobs", AddJobs, nullptr, true},
      {"show", "Jobs", AddShow, nullptr, true},
      {"why", "Jobs", AddWhy, nullptr, true},
      {"queue", "Jobs", AddQueue, nullptr, true},
      {"usage", "Jobs", AddUsage, nullptr, true},
      {"logs", "Jobs", AddLogs, nullptr, true},
      {"stop", "Jobs", AddStop, nullptr, true},
      {"suspend", "Jobs", AddSuspend, nullptr, true},
      {"resume", "Jobs", AddResume, nullptr, true},
      {"scale", "Jobs", AddScale, nullptr, true},
      {"plot", "Jobs", AddPlot, nullptr, true},
      {"outputs", "Jobs", AddOutputs, nullptr, true},
      {"secret", "Jobs", AddSecret, nullptr, true},
      {"webhook", "Jobs", AddWebhook, nullptr, true},
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
      {"map", "Models", AddMap},
      {"report", "Models", AddReport, nullptr, true},
      {"models", "Models", AddModels, nullptr, true},
      {"publish", "Models", AddPublish, nullptr, true},
      {"rollback", "Models", AddRollback, nullptr, true},
      {"data", "Data", AddData},
      {"catalog", "Data", AddCatalog, nullptr, true},
      {"lineage", "Data", AddLineage, nullptr, true},
      {"server", "Server", AddServer},
      {"login", "Server", AddLogin},
      {"policy", "Server", AddPolicy, nullptr, true},
      {"logout", "Server", AddLogout},
      {"open", "Server", AddOpen, nullptr, true},
      {"simulate", "Machine", AddSimulate},
      {"doctor", "Machine", AddDoctor},
      {"completion", "Machine", AddCompletion},
      {"version", "Machine", AddVersion},
  };
}

// Those that processes of Shoal call.
std::vector<Command> InternalCommands() {
  return {
      {"coordinator", "", AddCoordinator},
      {"task", "", AddTask},
      {"prepare", "", AddPrepare, CountArgsBeforeCommand},
      {"slurm", "", AddSlurm, [](int /*argc*/, const char* const* /*argv*/) { return 2; }},
      {"marathon", "", AddMarathon, [](int /*argc*/, const char* const* /*argv*/) { return 2; }},
      {"mpi-worker", "", AddMpiWorker},
      {"mpi-agent", "", AddMpiAgent, CountArgsBeforeCommand},
      {"learn", "", AddLearn},
      {"gate", "", AddGate},
      {"sql-query", "", AddSqlQuery},
      {"sql-session", "", AddSqlSession},
      {"enter", "", AddEnter, CountArgsBeforeCommand},
  };
}

}  // namespace

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = [] {
    std::vector<Command> all = CommandsForPeople();
    for (const Command& one : InternalCommands()) all.push_back(one);
    return all;
  }();
  return commands;
}

}  // namespace shoal::cli
