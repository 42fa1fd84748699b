// Programs that hang, under the real coordinator and launchers: diagnostics and reactions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/integration/job_harness.h"

namespace shoal::rendezvous {
namespace {

using job::JobState;
using std::chrono::milliseconds;
using testing::HasSubstr;

const JobEvent* Find(const JobHarness& harness, JobEvent::Type type) {
  for (const JobEvent& event : harness.events) {
    if (event.type == type) return &event;
  }
  return nullptr;
}

job::Job Hanging(const std::string& script, job::OnStall on_stall) {
  job::Job job = JobOf({ShellRole("worker", 2, script)});
  job.limits.stall = milliseconds(300);  // shorter than job files may say
  job.limits.on_stall = on_stall;
  return job;
}

void StartAll(JobHarness* harness) {
  harness->StartCoordinator();
  harness->StartController();
  harness->StartAllLaunchers();
}

TEST(Stalls, AreToldWithWhatEveryProcessWaitsFor) {
  JobHarness harness(
      Hanging("echo waiting for the others; sleep 1000; exit 0", job::OnStall::kReport));
  StartAll(&harness);
  ASSERT_TRUE(harness.Until([&] { return Find(harness, JobEvent::Type::kStalled) != nullptr; }));
  const JobEvent& stalled = *Find(harness, JobEvent::Type::kStalled);
  EXPECT_GT(stalled.seq, 0);
  EXPECT_THAT(stalled.text, HasSubstr("stalled: no task has printed"));
  const json::array& tasks = stalled.body.at("tasks").as_array();
  ASSERT_EQ(tasks.size(), 2u);
  for (const json::value& one : tasks) {
    const json::object& task = one.as_object();
    EXPECT_EQ(GetStringOr(task, "last_line", ""), "waiting for the others");
    EXPECT_GE(GetIntOr(task, "still_ms", 0), 300);
    const json::array& processes = task.at("processes").as_array();
    ASSERT_EQ(processes.size(), 2u);
    EXPECT_EQ(GetStringOr(processes[0].as_object(), "name", ""), "sh");
    const json::object& sleeper = processes[1].as_object();
    EXPECT_EQ(GetStringOr(sleeper, "name", ""), "sleep");
    EXPECT_EQ(GetStringOr(sleeper, "state", ""), "S");
    EXPECT_EQ(sleeper.at("waits").as_array().size(), 1u);
  }
  // The stall is only reported; the test ends the job.
  EXPECT_FALSE(harness.verdict);
  harness.client->Kill("enough");
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kCancelled);
}

TEST(Stalls, StartAllAgainInPlace) {
  JobHarness harness(
      Hanging("test $SHOAL_ATTEMPT = 1 && exit 0; echo hung; sleep 1000", job::OnStall::kRestart));
  StartAll(&harness);
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded) << harness.verdict->reason;
  ASSERT_NE(Find(harness, JobEvent::Type::kStalled), nullptr);
  ASSERT_NE(Find(harness, JobEvent::Type::kMoving), nullptr);
  EXPECT_EQ(harness.verdict->tasks[0].attempts, 2);
  EXPECT_EQ(harness.verdict->tasks[1].attempts, 2);
}

TEST(Stalls, FailTheJobWhereItSaysSo) {
  JobHarness harness(Hanging("sleep 1000", job::OnStall::kFail));
  StartAll(&harness);
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kFailed);
  EXPECT_THAT(harness.verdict->reason, HasSubstr("the job stalled: "));
  ASSERT_NE(Find(harness, JobEvent::Type::kStalled), nullptr);
}

}  // namespace
}  // namespace shoal::rendezvous
