// A job of real programs that is suspended and goes on under another coordinator and launchers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "rendezvous/integration/job_harness.h"

namespace shoal::rendezvous {
namespace {

using job::JobState;
using testing::HasSubstr;

void StartAll(JobHarness* harness) {
  harness->StartCoordinator();
  harness->StartController();
  harness->StartAllLaunchers();
}

// As the controller does it: only the journal of the first run is left.
void Resume(JobHarness* harness, int times) {
  harness->client.reset();
  harness->coordinator_.reset();
  harness->client_closed.reset();
  harness->coordinator_end.reset();
  harness->verdict.reset();
  harness->events.clear();
  harness->logs.clear();
  harness->launchers.clear();
  harness->launcher_exits.clear();
  ASSERT_TRUE(WriteFileAtomically(harness->dir() + "/resumes", std::to_string(times) + "\n").ok());
  StartAll(harness);
}

TEST(Suspension, LetsProgramsSaveAndGoOnWithTheNextAttempt) {
  job::Role worker = ShellRole("worker", 2,
                               "at=$SHOAL_JOB_DIR/saved-$SHOAL_INDEX; "
                               "test -f $at && { echo on from $(cat $at); exit 0; }; "
                               "trap 'echo $SHOAL_ATTEMPT.saved > $at' USR1; "
                               "trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done");
  worker.checkpoint_signal = SIGUSR1;
  job::Role server = ShellRole("server", 1, "trap 'exit 0' TERM; while :; do sleep 0.01; done");
  server.follows = "worker";
  job::Job job = JobOf({worker, server});
  job.limits.stop_grace = std::chrono::milliseconds(300);
  JobHarness harness(job);
  StartAll(&harness);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(harness.Until([&] { return harness.LogOf("worker", i) == "up\n"; }));
  }
  harness.client->Suspend("for the night");
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSuspended);
  EXPECT_EQ(harness.verdict->reason, "for the night");

  Resume(&harness, 1);
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded) << harness.verdict->reason;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(harness.LogOf("worker", i, 1), "on from 0.saved\n");
    // Events before the suspension are not published again.
    EXPECT_EQ(harness.LogOf("worker", i, 0), "");
  }
  bool second = false;
  for (const JobEvent& event : harness.events) second = second || event.generation == 2;
  EXPECT_TRUE(second);
}

TEST(Suspension, ACoordinatorThatDiesAfterwardsGoesOnOnce) {
  JobHarness harness(JobOf({ShellRole("worker", 1,
                                      "test $SHOAL_ATTEMPT = 2 && exit 0; echo up; "
                                      "while :; do sleep 0.01; done")}));
  StartAll(&harness);
  ASSERT_TRUE(harness.Until([&] { return harness.LogOf("worker", 0) == "up\n"; }));
  harness.client->Suspend("x");
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSuspended);
  Resume(&harness, 1);
  ASSERT_TRUE(harness.Until([&] { return harness.LogOf("worker", 0, 1) == "up\n"; }));
  harness.CrashCoordinator();
  harness.StartCoordinator();
  harness.client->Suspend("y");
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSuspended);
  Resume(&harness, 2);
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded) << harness.verdict->reason;
}

}  // namespace
}  // namespace shoal::rendezvous
