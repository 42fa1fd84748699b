#include "learn/logistic/logistic.h"

#include "learn/logistic/learner.h"
#include "learn/logistic/params.h"
#include "learn/sparse/algorithm.h"

namespace shoal::learn::logistic {

const Algorithm& GetAlgorithm() {
  static const auto algorithm = sparse::MakeAlgorithm<Params, LogisticLearner>(
      "Sparse logistic regression by FTRL-proximal or AdaGrad.", sparse::kFormats);
  return algorithm;
}

const Algorithm& GetLinearAlgorithm() {
  static const auto algorithm = sparse::MakeAlgorithm<LinearParams, LogisticLearner>(
      "Linear model of classes, numbers or counts, by FTRL-proximal or AdaGrad.", sparse::kFormats);
  return algorithm;
}

}  // namespace shoal::learn::logistic
