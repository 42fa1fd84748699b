// The limit of open files of a process (RLIMIT_NOFILE). The usual soft limit of 1,024 is meant
// for programs that use select(2); what holds a descriptor for every task of a job raises it to the
// hard one, and gives programs of users the limit back that it was started with.
#pragma once

#include <cstdint>
#include <string>

namespace shoal {

// In the environment of a process of ours that runs programs of users: the soft limit that they are
// to have.
inline constexpr const char* kOpenFilesVariable = "SHOAL_OPEN_FILES";

// Raises the soft limit to the hard one, and gives the soft limit that the process had before it
// was first raised. Thread-safe.
uint64_t RaiseOpenFiles();

// "SHOAL_OPEN_FILES=N" for a child, after RaiseOpenFiles; empty if nothing was raised.
std::string OpenFilesEntry();

// In the child: lowers its soft limit to what the variable says, and takes it out of the
// environment. Does nothing without the variable. Before any other thread runs.
void RestoreOpenFiles();

}  // namespace shoal
