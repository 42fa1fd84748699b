// A training as a job: the job file that flags of `shoal train` or a statement of SQL stand for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"
#include "learn/algorithm.h"

namespace shoal::learn {

// What flags or a statement say.
struct TrainRequest {
  std::string name;  // of the job; empty: the algorithm's
  std::vector<std::string> data;
  std::vector<std::string> test;
  std::string format;  // empty: derived from the name of the first file
  std::string output;
  int workers = 1;
  int servers = -1;  // -1: none for one worker, else one
  std::string checkpoint = "60s";
  std::map<std::string, std::string> params;     // given parameters by their names in the table
  std::map<std::string, std::string> resources;  // of a worker: "memory", "cpu", "gpu"
};

// The formats that the algorithm reads; the first is the default.
std::vector<std::string> FormatsOf(const Algorithm& algorithm);

// The job, parsed like one from a file, so that presets and checks are the same; the parameters are
// not validated yet (ValidateLearn). InvalidArgument without places of the generated text.
Result<job::Job> MakeTrainJob(const Algorithm& algorithm, const TrainRequest& request);

}  // namespace shoal::learn
