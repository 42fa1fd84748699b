// What a job's directory says of the job. Used by coordinator.cc and launcher.cc.
#pragma once

#include <string>

#include "base/status.h"
#include "job/spec/job.h"

namespace shoal::rendezvous {

struct JobFiles {
  job::Job job;
  std::string id;
  std::string token;
  int resumes = 0;  // how often it was to be resumed after a suspension
};

// DIR/job.json, DIR/id, DIR/token and, where it was resumed, DIR/resumes. Errors name the file.
Result<JobFiles> ReadJobFiles(const std::string& job_dir);

}  // namespace shoal::rendezvous
