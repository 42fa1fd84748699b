#include "learn/fm/fm.h"

#include "learn/fm/learner.h"
#include "learn/fm/params.h"
#include "learn/sparse/algorithm.h"

namespace shoal::learn::fm {

const Algorithm& GetAlgorithm() {
  static const auto algorithm = sparse::MakeAlgorithm<Params, FmLearner>(
      "Factorization machines of order 2: weights by FTRL-proximal, factors by AdaGrad.",
      sparse::kFormats);
  return algorithm;
}

}  // namespace shoal::learn::fm
