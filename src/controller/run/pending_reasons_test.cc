#include "controller/run/pending_reasons.h"

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

TEST(PendingReasons, EachReasonIsToldOnceForItsRole) {
  PendingReasons reasons;
  EXPECT_EQ(reasons.ApplyEvent(Word(3, TaskPhase::kStarting, "no room")),
            "worker 3 waits: no room");
  EXPECT_EQ(reasons.ApplyEvent(Word(4, TaskPhase::kStarting, "no room")), "");
  EXPECT_EQ(reasons.ApplyEvent(Word(4, TaskPhase::kStarting, "no image")),
            "worker 4 waits: no image");
  EXPECT_EQ(reasons.ApplyEvent(Word(5, TaskPhase::kStarting)), "");
  for (int i = 0; i < 100; ++i) {
    const bool told = !reasons.ApplyEvent(Word(6, TaskPhase::kStarting, std::to_string(i))).empty();
    EXPECT_EQ(told, i < 30) << i;
  }
}

TEST(PendingReasons, WhatHasBegunIsNotSaidToHaveWaited) {
  PendingReasons reasons;
  reasons.ApplyEvent(Word(0, TaskPhase::kStarting, "fits on no node now"));
  EXPECT_EQ(reasons.Explain("a task did not come"),
            "a task did not come; worker 0 waited: fits on no node now");
  EXPECT_EQ(reasons.Explain("it fits on no node now"), "it fits on no node now");
  reasons.ApplyEvent(Word(0, TaskPhase::kRunning));
  EXPECT_EQ(reasons.Explain("worker 0 failed"), "worker 0 failed");
}

}  // namespace
}  // namespace shoal::controller
