#include "rendezvous/coordinator/job_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shoal::rendezvous {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(JobClock, AJobThatIsToEndIsNotHeldAnyMore) {
  std::vector<std::string> notes;
  JobClock time(
      std::chrono::seconds(1), [&](const std::string& text) { notes.push_back(text); }, [] {});
  const json::object held{{"held", true}, {"reason", "the queue has suspended it"}};
  const int controller = 0;
  ASSERT_TRUE(time.HandleHold(&controller, held).ok());
  time.IgnorePauses();
  EXPECT_THAT(notes, ElementsAre(HasSubstr("are stopped"), HasSubstr("run again")));
  // The engine may report the pause after the request to end.
  ASSERT_TRUE(time.HandleHold(&controller, held).ok());
  EXPECT_EQ(notes.size(), 2u);
}

}  // namespace
}  // namespace shoal::rendezvous
