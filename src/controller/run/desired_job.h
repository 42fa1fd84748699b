// From a job to the process trees that an engine must make exist. Used by job_run.cc.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/status.h"
#include "controller/run/desired_membership.h"
#include "engine/engine.h"
#include "job/spec/job.h"

namespace shoal::controller {

inline constexpr const char* kCoordinatorRole = "coordinator";

struct DesiredJobPaths {
  std::filesystem::path dir;       // the job's
  std::filesystem::path work_dir;  // of the programs, unless the job says `files`; empty: dir
  std::string program;             // shoal
  // Whether tasks see `dir` (Engine::SharesJobDirectory); if not, what they are given of it
  // (rendezvous/bootstrap/bootstrap_files.h), made for them.
  bool shared = true;
  std::map<std::string, std::string> seed = {};
};

// One coordinator and one launcher a task, each a start of shoal.
Result<engine::DesiredJob> MakeDesiredJob(const job::Job& job, const std::string& id,
                                          const DesiredJobPaths& places,
                                          const DesiredMembership& membership);

}  // namespace shoal::controller
