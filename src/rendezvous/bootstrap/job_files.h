// The description, id and token of a job, read from its directory. Used by coordinator.cc and
// launcher.cc.
#pragma once

#include <string>

#include "base/status.h"
#include "job/spec/job.h"

namespace shoal::rendezvous {

struct JobFiles {
  job::Job job;
  std::string id;
  std::string token;
  int resumes = 0;  // how often the job was resumed after a suspension
};

// Reads DIR/job.json, DIR/id, DIR/token and, of a resumed job, DIR/resumes. Errors name the file.
Result<JobFiles> ReadJobFiles(const std::string& job_dir);

}  // namespace shoal::rendezvous
