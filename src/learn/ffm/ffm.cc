#include "learn/ffm/ffm.h"

#include "learn/ffm/learner.h"
#include "learn/ffm/params.h"
#include "learn/parameter_server.h"
#include "learn/sparse/job.h"

namespace shoal::learn::ffm {
namespace {

constexpr std::string_view kName = "ffm";

Status Validate(const job::Job& job) {
  TRY_ASSIGN(const Params params, Parse(job.learn, job.file));
  return sparse::ValidateJob(job, params, kName);
}

Status TrainAsWorker(Task& task) {
  TRY_ASSIGN(const Params params, Parse(task.learn, ""));
  TRY_ASSIGN(const FfmLearner learner, FfmLearner::Make(params));
  return sparse::TrainAsWorker(task, {kName, params, ToText(params), &learner});
}

}  // namespace

const Algorithm& GetAlgorithm() {
  static const Algorithm algorithm = {
      kName,
      "Field-aware factorization machines: weights by FTRL-proximal, factors by AdaGrad.",
      ParamTable(),
      Validate,
      RunParameterServer,
      TrainAsWorker,
      "libffm csv",
      true};
  return algorithm;
}

}  // namespace shoal::learn::ffm
