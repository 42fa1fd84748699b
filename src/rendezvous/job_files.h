// What a job's directory says of the job. Used by coordinator.cc and launcher.cc.
#pragma once

#include <string>

#include "base/status.h"
#include "job/job.h"

namespace shoal::rendezvous {

struct JobFiles {
  job::Job job;
  std::string id;
  std::string token;
};

// DIR/job.json, DIR/id and DIR/token. Errors name the file.
Result<JobFiles> ReadJobFiles(const std::string& job_dir);

}  // namespace shoal::rendezvous
