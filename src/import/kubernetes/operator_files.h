// Files that an operator wrote into its pods (/etc/mpi/hostfile, /etc/volcano/worker.host):
// commands read them where Shoal writes them, because nothing may write to the machine's /etc. Used
// by mpi_job.cc and volcano.cc.
#pragma once

#include <string>
#include <string_view>

#include "job/spec/job.h"

namespace shoal::importer {

// True if a word of the role's command contains `text`.
bool CommandContains(const job::Role& role, std::string_view text);

// True if the role's command calls the program: a word of it, or of a script in it.
bool CommandCalls(const job::Role& role, std::string_view program);

// Replaces `path` in the role's command by the value of the variable. A script of `sh -c` is
// changed in place, with its quotes respected: within double quotes and outside of quotes the shell
// expands the variable, single quotes are closed around it. Comments and here-documents are treated
// like code. Other commands are run by a shell, which inserts the value. No effect without a
// command.
void MovePath(std::string_view path, const std::string& variable, job::Role* role);

// Puts a statement before the role's command: within the script of `bash -c`, so that the profile
// of a login shell does not undo it, else in a shell of its own. No effect without a command.
void PutBeforeCommand(const std::string& statement, job::Role* role);

}  // namespace shoal::importer
