#include "learn/coordination/trained_count.h"

#include <gtest/gtest.h>

namespace shoal::learn {
namespace {

TEST(TrainedCount, IsCountedTimesEpochs) {
  EXPECT_TRUE(CheckTrainedCount({30, 10, 3, "examples"}, "the job").ok());
  EXPECT_TRUE(CheckTrainedCount({0, 0, 3, "examples"}, "the job").ok());
  for (const uint64_t trained : {0u, 29u, 31u, 40u}) {
    const Status status = CheckTrainedCount({trained, 10, 3, "examples"}, "the job");
    EXPECT_EQ(status.code(), Code::kFailedPrecondition) << trained;
  }
  EXPECT_EQ(CheckTrainedCount({40, 10, 3, "words"}, "worker 2").message(),
            "worker 2 has trained 40 words, expected 30: 10 in the data, 3 epochs; nothing is "
            "saved. Run the job again, and leave its data files unchanged while it runs");
}

TEST(TrainedCount, FactsAreNamedAfterTheUnit) {
  EXPECT_EQ(ToText(TrainedCountMetadata({30, 10, 3, "words"})),
            R"({"words_trained":30,"words":10,"epochs":3})");
}

}  // namespace
}  // namespace shoal::learn
