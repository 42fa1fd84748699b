// Registration functions of the hidden subcommands, which engines, launchers and mpirun start;
// listed in command_table.cc (`shoal`) and task_main.cc (`shoal-task`).
#pragma once

#include "cli/command.h"

namespace shoal::cli {

void AddCoordinator(CLI::App& app, Run* chosen);
void AddTask(CLI::App& app, Run* chosen);
void AddPrepare(CLI::App& app, Run* chosen);
void AddLearn(CLI::App& app, Run* chosen);
void AddEnter(CLI::App& app, Run* chosen);
void AddMpiWorker(CLI::App& app, Run* chosen);
void AddMpiAgent(CLI::App& app, Run* chosen);
void AddSlurm(CLI::App& app, Run* chosen);
void AddMarathon(CLI::App& app, Run* chosen);
void AddInstall(CLI::App& app, Run* chosen);   // of shoal-task only
void AddTaskData(CLI::App& app, Run* chosen);  // likewise

}  // namespace shoal::cli
