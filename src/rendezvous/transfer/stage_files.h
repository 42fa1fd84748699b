// Prestart step of a job with `files`: stages the job's directory and its Python virtual
// environment on the task's host. Runs in the task's own process tree (`shoal prepare -- COMMAND`,
// cli), which then becomes the program, so that long downloads are stopped, logged and limited like
// the program itself.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"

namespace shoal::rendezvous {

struct StageFilesOptions {
  std::string job_dir;  // token, coordinator.json; files/manifest.json where the submitting host is
                        // this one
  std::filesystem::path scratch;  // the attempt's; files/ is created in it
  std::filesystem::path cache;    // shared by this host's tasks of this user
  std::string builder;            // names this attempt for PythonEnvSpec
  bool only_if_staged =
      false;  // for readiness checks: Unavailable until the program's own preparation is done
};

struct StagedFiles {
  std::filesystem::path work_dir;
  std::filesystem::path env;  // the virtual environment; empty: the job has no requirements.txt
};

// The first of a task's processes stages, the others wait for it. Leaves the virtual environment's
// lock open without O_CLOEXEC, so that it is held until the program has ended. Blocks.
Result<StagedFiles> StageFiles(const StageFilesOptions& options);

}  // namespace shoal::rendezvous
