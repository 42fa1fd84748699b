#include "controller/task_waits.h"

#include <gtest/gtest.h>

namespace shoal::controller {
namespace {

using engine::TaskPhase;

engine::TaskEvent Word(int index, TaskPhase phase, const std::string& why = "") {
  engine::TaskEvent event;
  event.role = "worker";
  event.index = index;
  event.phase = phase;
  event.end.reason = why;
  return event;
}

TEST(TaskWaits, EachReasonIsToldOnceForItsRole) {
  TaskWaits waits;
  EXPECT_EQ(waits.Take(Word(3, TaskPhase::kStarting, "no room")), "worker 3 waits: no room");
  EXPECT_EQ(waits.Take(Word(4, TaskPhase::kStarting, "no room")), "");
  EXPECT_EQ(waits.Take(Word(4, TaskPhase::kStarting, "no image")), "worker 4 waits: no image");
  EXPECT_EQ(waits.Take(Word(5, TaskPhase::kStarting)), "");
  for (int i = 0; i < 100; ++i) {
    const bool told = !waits.Take(Word(6, TaskPhase::kStarting, std::to_string(i))).empty();
    EXPECT_EQ(told, i < 30) << i;
  }
}

TEST(TaskWaits, WhatHasBegunIsNotSaidToHaveWaited) {
  TaskWaits waits;
  waits.Take(Word(0, TaskPhase::kStarting, "fits on no node now"));
  EXPECT_EQ(waits.Explain("a task did not come"),
            "a task did not come; worker 0 waited: fits on no node now");
  EXPECT_EQ(waits.Explain("it fits on no node now"), "it fits on no node now");
  waits.Take(Word(0, TaskPhase::kRunning));
  EXPECT_EQ(waits.Explain("worker 0 failed"), "worker 0 failed");
}

}  // namespace
}  // namespace shoal::controller
