// A job of real programs that is suspended, and goes on under another coordinator and launchers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "rendezvous/rendezvous_testing.h"

namespace shoal::rendezvous {
namespace {

using job::JobState;
using testing::HasSubstr;

void StartAll(Bench* bench) {
  bench->StartCoordinator();
  bench->StartController();
  bench->StartAllLaunchers();
}

// As the controller does: everything of the first life is gone, the journal is there.
void Resume(Bench* bench, int times) {
  bench->client.reset();
  bench->coordinator_.reset();
  bench->client_closed.reset();
  bench->coordinator_end.reset();
  bench->verdict.reset();
  bench->events.clear();
  bench->logs.clear();
  bench->launchers.clear();
  bench->launcher_exits.clear();
  ASSERT_TRUE(WriteFileAtomically(bench->dir() + "/resumes", std::to_string(times) + "\n").ok());
  StartAll(bench);
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
  Bench bench(job);
  StartAll(&bench);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(bench.Until([&] { return bench.LogOf("worker", i) == "up\n"; }));
  }
  bench.client->Suspend("for the night");
  EXPECT_EQ(bench.RunToVerdict().state, JobState::kSuspended);
  EXPECT_EQ(bench.verdict->reason, "for the night");

  Resume(&bench, 1);
  EXPECT_EQ(bench.RunToVerdict().state, JobState::kSucceeded) << bench.verdict->reason;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(bench.LogOf("worker", i, 1), "on from 0.saved\n");
    // What was told before the suspension is not told again.
    EXPECT_EQ(bench.LogOf("worker", i, 0), "");
  }
  bool second = false;
  for (const JobEvent& event : bench.events) second = second || event.generation == 2;
  EXPECT_TRUE(second);
}

TEST(Suspension, ACoordinatorThatDiesAfterwardsGoesOnOnce) {
  Bench bench(JobOf({ShellRole("worker", 1,
                               "test $SHOAL_ATTEMPT = 2 && exit 0; echo up; "
                               "while :; do sleep 0.01; done")}));
  StartAll(&bench);
  ASSERT_TRUE(bench.Until([&] { return bench.LogOf("worker", 0) == "up\n"; }));
  bench.client->Suspend("x");
  EXPECT_EQ(bench.RunToVerdict().state, JobState::kSuspended);
  Resume(&bench, 1);
  ASSERT_TRUE(bench.Until([&] { return bench.LogOf("worker", 0, 1) == "up\n"; }));
  bench.CrashCoordinator();
  bench.StartCoordinator();
  bench.client->Suspend("y");
  EXPECT_EQ(bench.RunToVerdict().state, JobState::kSuspended);
  Resume(&bench, 2);
  EXPECT_EQ(bench.RunToVerdict().state, JobState::kSucceeded) << bench.verdict->reason;
}

}  // namespace
}  // namespace shoal::rendezvous
