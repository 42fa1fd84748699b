// The two ends of an algorithm on sparse examples that look the same for all of them: the check of
// a job, and a worker's surroundings inside `shoal learn worker`.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"
#include "learn/algorithm.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/params.h"
#include "learn/task/task.h"

namespace shoal::learn::sparse {

// The data entries: what is trained on, and what is held out.
inline constexpr const char* kTrain = "train";
inline constexpr const char* kHeldOut = "test";
inline constexpr const char* kValidation = "validation";  // ends the training

// Replaces the loss "auto" of `params` by what the data to train on says (label_guess.h). Errors of
// reading it.
Status ResolveLoss(const std::vector<job::DataSource>& data, CommonParams* params);

// Roles, data and output of a job of `algorithm`. InvalidArgument and the like, one sentence.
Status ValidateJob(const job::Job& job, const CommonParams& params, std::string_view algorithm,
                   DataLocation data);

// What an algorithm brings to its workers.
struct Trainer {
  std::string_view algorithm;
  CommonParams params;
  std::map<std::string, std::string> parameters;  // all of them, for model.json
  const Learner* learner = nullptr;               // not owned
};

// The body of the role worker.
Status TrainAsWorker(Task& task, const Trainer& trainer);

}  // namespace shoal::learn::sparse
