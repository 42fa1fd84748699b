#include "cli/terminal/stall_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

json::object Evidence() {
  return {{"tasks",
           json::array{
               json::object{
                   {"role", "worker"},
                   {"index", 1},
                   {"still_ms", 600'000},
                   {"cpu_seconds", 3.25},
                   {"last_line", "epoch 3\x1b[2J"},
                   {"last_line_ms", 601'000},
                   {"processes",
                    json::array{json::object{
                        {"pid", 12},
                        {"name", "python"},
                        {"state", "S"},
                        {"waits", json::array{json::object{{"in", "futex_wait"}, {"threads", 3}},
                                              json::object{{"in", "ep_poll"}, {"threads", 1}}}}}}},
                   {"connections", json::array{json::object{{"local", "10.0.0.1:4000"},
                                                            {"peer", "10.0.0.2:5000"},
                                                            {"state", "established"},
                                                            {"unread", 0},
                                                            {"unsent", 77}}}}},
               json::object{{"role", "ps"}, {"index", 0}, {"still_ms", 5}, {"silent", true}}}}};
}

TEST(FormatStallReport, SaysWhatEveryTaskWasDoing) {
  const WallTime from{};
  const std::vector<controller::Event> events = {
      controller::StalledEvent(from + std::chrono::seconds(700), "stalled: …", Evidence())};
  const std::string text = FormatStallReport(events, from);
  EXPECT_THAT(text, HasSubstr("worker-1 has stood still for"));
  EXPECT_THAT(text, HasSubstr("used 3.2 s of processor"));
  EXPECT_THAT(text,
              HasSubstr("process 12 python (S): 3 threads in futex_wait, 1 thread in ep_poll"));
  EXPECT_THAT(text, HasSubstr("10.0.0.1:4000 to 10.0.0.2:5000, established, 77 bytes unsent\n"));
  EXPECT_THAT(text, HasSubstr("ps-0 has stood still for 5 ms; its launcher did not say more"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b[2J")));
  EXPECT_THAT(text, Not(HasSubstr("moved again")));
}

TEST(FormatStallReport, SaysThatItMovedAgain) {
  const WallTime from{};
  std::vector<controller::Event> events = {controller::StalledEvent(from, "a", Evidence()),
                                           controller::MovingEvent(from + std::chrono::seconds(9))};
  EXPECT_THAT(FormatStallReport(events, from), HasSubstr("moved again at +9.0 s"));
  events.push_back(controller::StalledEvent(from, "b", {{"tasks", 7}}));  // no list
  EXPECT_THAT(FormatStallReport(events, from), Not(HasSubstr("moved")));
  EXPECT_EQ(FormatStallReport({}, from), "");
}

}  // namespace
}  // namespace shoal::cli
