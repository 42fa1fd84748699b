#include "learn/ffm/ffm.h"

#include "learn/ffm/learner.h"
#include "learn/ffm/params.h"
#include "learn/sparse/algorithm.h"

namespace shoal::learn::ffm {

const Algorithm& GetAlgorithm() {
  static const auto algorithm = sparse::MakeAlgorithm<Params, FfmLearner>(
      "Field-aware factorization machines: weights by FTRL-proximal, factors by AdaGrad.",
      "libffm csv tsv jsonl tfrecord parquet");
  return algorithm;
}

}  // namespace shoal::learn::ffm
