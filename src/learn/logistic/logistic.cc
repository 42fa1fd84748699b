#include "learn/logistic/logistic.h"

#include "learn/logistic/learner.h"
#include "learn/logistic/params.h"
#include "learn/parameter_server.h"
#include "learn/sparse/job.h"

namespace shoal::learn::logistic {
namespace {

constexpr std::string_view kName = "logistic";

Status Validate(const job::Job& job) {
  TRY_ASSIGN(const Params params, Parse(job.learn, job.file));
  return sparse::ValidateJob(job, params, kName);
}

Status TrainAsWorker(Task& task) {
  TRY_ASSIGN(const Params params, Parse(task.learn, ""));
  TRY_ASSIGN(const LogisticLearner learner, LogisticLearner::Make(params));
  return sparse::TrainAsWorker(task, {kName, params, ToText(params), &learner});
}

}  // namespace

const Algorithm& GetAlgorithm() {
  static const Algorithm algorithm = {kName,
                                      "Sparse logistic regression by FTRL-proximal or AdaGrad.",
                                      ParamTable(),
                                      Validate,
                                      RunParameterServer,
                                      TrainAsWorker,
                                      "libsvm libffm csv",
                                      true};
  return algorithm;
}

}  // namespace shoal::learn::logistic
