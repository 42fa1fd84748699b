// Converts a job to the desired state of an engine: one coordinator and one launcher per task. Used
// by job_run.cc.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/status.h"
#include "controller/membership/desired_membership.h"
#include "engine/engine.h"
#include "job/spec/job.h"

namespace shoal::controller {

struct DesiredJobPaths {
  std::filesystem::path dir;       // the job's directory
  std::filesystem::path work_dir;  // working directory of programs without `files`; empty: dir
  std::string program;             // path of shoal
  // True if tasks see `dir` (Engine::SharesJobDirectory). Otherwise they get bootstrap files from
  // which they make a directory of their own.
  bool shared = true;
  std::map<std::string, std::string> bootstrap_files = {};
};

// Makes the desired job; every process is a start of shoal.
Result<engine::DesiredJob> MakeDesiredJob(const job::Job& job, const std::string& id,
                                          const DesiredJobPaths& places,
                                          const DesiredMembership& membership);

}  // namespace shoal::controller
