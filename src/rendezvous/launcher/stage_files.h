// Before a task's program starts where its job says `files`: the job's directory and its virtual
// environment come into being on the task's host. Runs in the task's own process tree (`shoal
// prepare -- COMMAND`, cli/internal/prepare.cc), which becomes the program afterwards, so what
// takes long is stopped, logged and bounded like the program itself.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"

namespace shoal::rendezvous {

struct StageFilesOptions {
  std::string job_dir;  // token, coordinator.json; files/manifest.json where the submitting host is
                        // this one
  std::filesystem::path scratch;  // the attempt's: files/ is made in it
  std::filesystem::path cache;    // of this host and user
  std::string builder;            // names this attempt of the job: PythonEnvSpec
  bool only_if_staged =
      false;  // for readiness checks: Unavailable until the program's own preparation is done
};

struct StagedFiles {
  std::filesystem::path work_dir;
  std::filesystem::path env;  // the virtual environment; empty: the job has no requirements.txt
};

// The first of a task's processes does it, the others wait for that one. Leaves the lock of the
// virtual environment open without O_CLOEXEC, so that it is held until the program has ended.
// Blocks.
Result<StagedFiles> StageFiles(const StageFilesOptions& options);

}  // namespace shoal::rendezvous
