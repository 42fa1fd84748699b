#include "job/spec/job_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

GraphJob Of(const std::string& name, const std::vector<std::string>& after) {
  GraphJob job{name, {}};
  for (const std::string& one : after) job.after.push_back({one, DependencyWhen::kSucceeded});
  return job;
}

TEST(JobGraph, JobsFollowThoseThatTheyName) {
  GraphError error;
  EXPECT_THAT(
      OrderOf({Of("d", {"b", "c"}), Of("b", {"a"}), Of("c", {"a", "elsewhere"}), Of("a", {})},
              &error),
      ElementsAre(3, 1, 2, 0));
  EXPECT_THAT(OrderOf({Of("a", {}), Of("b", {}), Of("c", {})}, &error), ElementsAre(0, 1, 2));
  EXPECT_TRUE(error.sentence.empty());
}

TEST(JobGraph, CyclesAreNamed) {
  GraphError error;
  EXPECT_THAT(OrderOf({Of("x", {"b"}), Of("a", {}), Of("b", {"a", "c"}), Of("c", {"b"})}, &error),
              IsEmpty());
  EXPECT_THAT(error.sentence, HasSubstr("b waits for c, which waits for b;"));
  EXPECT_FALSE(error.of_name);
  EXPECT_THAT(OrderOf({Of("a", {"a"})}, &error), IsEmpty());
  EXPECT_THAT(error.sentence, HasSubstr("a waits for a;"));
}

TEST(JobGraph, ANameBelongsToOneJob) {
  GraphError error;
  EXPECT_THAT(OrderOf({Of("a", {}), Of("b", {}), Of("a", {})}, &error), IsEmpty());
  EXPECT_EQ(error.job, 2u);
  EXPECT_TRUE(error.of_name);
}

}  // namespace
}  // namespace shoal::job
