#include "learn/fm/fm.h"

#include "learn/fm/learner.h"
#include "learn/fm/params.h"
#include "learn/parameter_server.h"
#include "learn/sparse/job.h"

namespace shoal::learn::fm {
namespace {

constexpr std::string_view kName = "fm";

Status Validate(const job::Job& job) {
  TRY_ASSIGN(const Params params, Parse(job.learn, job.file));
  return sparse::ValidateJob(job, params, kName);
}

Status TrainAsWorker(Task& task) {
  TRY_ASSIGN(const Params params, Parse(task.learn, ""));
  TRY_ASSIGN(const FmLearner learner, FmLearner::Make(params));
  return sparse::TrainAsWorker(task, {kName, params, ToText(params), &learner});
}

}  // namespace

const Algorithm& GetAlgorithm() {
  static const Algorithm algorithm = {
      kName,
      "Factorization machines of order 2: weights by FTRL-proximal, factors by AdaGrad.",
      ParamTable(),
      Validate,
      RunParameterServer,
      TrainAsWorker,
      "libsvm libffm csv",
      true};
  return algorithm;
}

}  // namespace shoal::learn::fm
