// Registration functions of the visible subcommands, defined in the command's own file and listed
// in command_table.cc.
#pragma once

#include "cli/command.h"

namespace shoal::cli {

void AddTrain(CLI::App& app, Run* chosen);
void AddRun(CLI::App& app, Run* chosen);
void AddSubmit(CLI::App& app, Run* chosen);
void AddPlan(CLI::App& app, Run* chosen);
void AddPlot(CLI::App& app, Run* chosen);
void AddSchedule(CLI::App& app, Run* chosen);
void AddImport(CLI::App& app, Run* chosen);
void AddSubmitDmlc(CLI::App& app, Run* chosen);
int CountDmlcOwnArgs(int argc, const char* const* argv);

void AddJobs(CLI::App& app, Run* chosen);
void AddShow(CLI::App& app, Run* chosen);
void AddSimulate(CLI::App& app, Run* chosen);
void AddLogs(CLI::App& app, Run* chosen);
void AddStop(CLI::App& app, Run* chosen);
void AddSuspend(CLI::App& app, Run* chosen);
void AddResume(CLI::App& app, Run* chosen);
void AddScale(CLI::App& app, Run* chosen);
void AddOutputs(CLI::App& app, Run* chosen);
void AddUsage(CLI::App& app, Run* chosen);
void AddWhy(CLI::App& app, Run* chosen);
void AddQueue(CLI::App& app, Run* chosen);
void AddPolicy(CLI::App& app, Run* chosen);
void AddSecret(CLI::App& app, Run* chosen);
void AddWebhook(CLI::App& app, Run* chosen);
void AddExec(CLI::App& app, Run* chosen);
void AddForward(CLI::App& app, Run* chosen);
void AddTables(CLI::App& app, Run* chosen);
void AddPsServer(CLI::App& app, Run* chosen);
void AddRabitTracker(CLI::App& app, Run* chosen);
void AddHorovodRendezvous(CLI::App& app, Run* chosen);

void AddNearest(CLI::App& app, Run* chosen);
void AddAnalogy(CLI::App& app, Run* chosen);
void AddEvaluate(CLI::App& app, Run* chosen);
void AddPredict(CLI::App& app, Run* chosen);
void AddReport(CLI::App& app, Run* chosen);

void AddData(CLI::App& app, Run* chosen);

void AddServer(CLI::App& app, Run* chosen);
void AddLogin(CLI::App& app, Run* chosen);
void AddLogout(CLI::App& app, Run* chosen);
void AddOpen(CLI::App& app, Run* chosen);

void AddDoctor(CLI::App& app, Run* chosen);
void AddCompletion(CLI::App& app, Run* chosen);
void AddVersion(CLI::App& app, Run* chosen);

}  // namespace shoal::cli
