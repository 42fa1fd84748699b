#include "rendezvous/job_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shoal::rendezvous {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(JobTime, AJobThatIsToEndIsNotHeldAnyMore) {
  std::vector<std::string> notes;
  JobTime time(
      std::chrono::seconds(1), [&](const std::string& text) { notes.push_back(text); }, [] {});
  const json::object held{{"held", true}, {"reason", "the queue has suspended it"}};
  const int controller = 0;
  ASSERT_TRUE(time.Held(&controller, held).ok());
  time.EndIsWanted();
  EXPECT_THAT(notes, ElementsAre(HasSubstr("are stopped"), HasSubstr("run again")));
  // The engine's word may come after the wish.
  ASSERT_TRUE(time.Held(&controller, held).ok());
  EXPECT_EQ(notes.size(), 2u);
}

}  // namespace
}  // namespace shoal::rendezvous
