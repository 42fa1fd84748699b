// The real coordinator and real launchers with real programs over loopback, in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/integration/job_harness.h"

namespace shoal::rendezvous {
namespace {

using job::JobState;
using job::TaskState;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

TEST(Lifecycle, FourTasksThatDoNothing) {
  JobHarness harness(JobOf({ShellRole("worker", 4, "exit 0")}));
  harness.StartCoordinator();
  const TimePoint begin = RealClock::Get()->Now();
  harness.StartController();
  harness.StartAllLaunchers();
  const Verdict verdict = harness.RunToVerdict();
  const Duration took = RealClock::Get()->Now() - begin;
  EXPECT_EQ(verdict.state, JobState::kSucceeded) << verdict.reason;
  EXPECT_EQ(harness.coordinator_->syncs(), 1);
  EXPECT_TRUE(harness.Until([&] { return harness.coordinator_end.has_value(); }));
  EXPECT_TRUE(harness.coordinator_end->ok());
  for (const auto& exit : harness.launcher_exits) EXPECT_EQ(exit.value_or(-1), 0);
  EXPECT_LT(took, seconds(5));
  RecordProperty("milliseconds", std::to_string(took / milliseconds(1)));
  EXPECT_THAT(harness.ReadOr(harness.dir() + "/verdict.json", ""), HasSubstr("succeeded"));
}

TEST(Lifecycle, FourTasksThatDoNothingAsProcesses) {
  JobHarness harness(JobOf({ShellRole("worker", 4, "exit 0")}));
  const TimePoint begin = RealClock::Get()->Now();
  harness.StartController();
  std::vector<pid_t> children{harness.SpawnCoordinator()};
  for (int i = 0; i < 4; ++i) children.push_back(harness.SpawnLauncher("worker", i));
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
  for (const pid_t child : children) {
    EXPECT_TRUE(harness.Until([&] { return harness.ExitCodeOf(child).has_value(); }));
    EXPECT_EQ(harness.ExitCodeOf(child), 0);
  }
  const Duration took = RealClock::Get()->Now() - begin;
  EXPECT_LT(took, seconds(5));
  RecordProperty("milliseconds", std::to_string(took / milliseconds(1)));
}

TEST(Lifecycle, LinesComeOnceAndWholeAndTheEndAfterThem) {
  JobHarness harness(JobOf({ShellRole("worker", 2,
                                      "for i in 1 2 3; do echo line $i; done; "
                                      "echo error >&2; printf tail")}));
  harness.StartCoordinator();
  harness.StartAllLaunchers();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(harness.LogOf("worker", i), "line 1\nline 2\nline 3\nerror\ntail");
    EXPECT_EQ(harness.Segment("worker", i), harness.LogOf("worker", i));
  }
  EXPECT_TRUE(harness.logs_contiguous);
  EXPECT_EQ(harness.coordinator_->syncs(), 1);
}

TEST(Lifecycle, ProgramsFindTheirEnvironment) {
  job::Role server = ShellRole("server", 2, "sleep 1000");
  server.follows = "worker";
  server.ports = {{"ps", false}, {"http", false}};
  job::Job job = JobOf({ShellRole("worker", 2,
                                  "echo $SHOAL_ROLE $SHOAL_INDEX $SHOAL_REPLICAS $SHOAL_ATTEMPT "
                                  "$SHOAL_GENERATION; echo \"$SHOAL_CLUSTER\"; "
                                  "cat \"$SHOAL_CLUSTER_FILE\"; "
                                  "test -s \"$SHOAL_TOKEN_FILE\" && test -d \"$SHOAL_SCRATCH\""),
                        server});
  JobHarness harness(job);
  harness.StartCoordinator();
  harness.StartAllLaunchers();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded) << harness.verdict->reason;
  const std::string log = harness.LogOf("worker", 1);
  EXPECT_THAT(log, HasSubstr("worker 1 2 0 1\n"));
  const size_t first = log.find('\n') + 1;
  const size_t second = log.find('\n', first) + 1;
  const std::string cluster = log.substr(first, second - first);
  EXPECT_EQ(cluster, log.substr(second));  // the variable and the file
  EXPECT_THAT(cluster, HasSubstr("\"server\":[\"127.0.0.1:"));
  EXPECT_THAT(cluster, HasSubstr("\"worker\":[\"127.0.0.1:0\",\"127.0.0.1:0\"]"));
  EXPECT_TRUE(std::filesystem::is_empty(harness.dir() + "/scratch"));
}

TEST(Lifecycle, FollowersAreStoppedWhenTheLastTaskTheyFollowHasEnded) {
  job::Role server =
      ShellRole("server", 2, "trap 'echo bye; exit 0' TERM; while :; do sleep 0.01; done");
  server.follows = "worker";
  JobHarness harness(JobOf({ShellRole("worker", 2, "sleep 0.0$SHOAL_INDEX"), server}));
  harness.StartCoordinator();
  harness.StartAllLaunchers();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded) << harness.verdict->reason;
  const Duration last = std::max(*harness.When("worker", 0, TaskState::kEnded),
                                 *harness.When("worker", 1, TaskState::kEnded));
  for (int i = 0; i < 2; ++i) {
    // The stop is sent together with the end; 100 ms is the promise.
    EXPECT_LT(*harness.When("server", i, TaskState::kDraining) - last, milliseconds(100));
    EXPECT_THAT(harness.LogOf("server", i), HasSubstr("bye\n"));
  }
}

TEST(Lifecycle, AFollowerThatDoesNotObeyIsKilledAtTheGrace) {
  job::Role server = ShellRole("server", 1, "trap '' TERM; echo up; while :; do sleep 0.01; done");
  server.follows = "worker";
  job::Job job = JobOf({ShellRole("worker", 1, "sleep 0.1"), server});
  job.limits.stop_grace = milliseconds(200);
  JobHarness harness(job);
  harness.StartCoordinator();
  harness.StartAllLaunchers();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded) << harness.verdict->reason;
  const Duration stop = *harness.When("server", 0, TaskState::kEnded) -
                        *harness.When("server", 0, TaskState::kDraining);
  EXPECT_GE(stop, milliseconds(150));
  EXPECT_LT(stop, seconds(5));
}

TEST(Lifecycle, AFailureNamesTheTaskItsCodeAndItsLastLine) {
  JobHarness harness(
      JobOf({ShellRole("worker", 3,
                       "if [ $SHOAL_INDEX = 1 ]; then echo starting; echo no such file; "
                       "exit 7; fi; sleep 1000")}));
  harness.StartCoordinator();
  harness.StartAllLaunchers();
  const Verdict verdict = harness.RunToVerdict();
  EXPECT_EQ(verdict.state, JobState::kFailed);
  EXPECT_THAT(verdict.reason, HasSubstr("worker 1 exited with 7"));
  EXPECT_THAT(verdict.reason, HasSubstr("its last line was: no such file"));
  EXPECT_EQ(verdict.tasks[0].end->kind, job::EndKind::kCancelled);
}

TEST(Lifecycle, ATransientDeathIsRestartedInPlaceUpToTheLimit) {
  job::Role role = ShellRole("worker", 1, "echo attempt $SHOAL_ATTEMPT; kill -SEGV $$");
  role.restart.limit = 2;
  role.restart.backoff = milliseconds(5);
  JobHarness harness(JobOf({role}));
  harness.StartCoordinator();
  harness.StartAllLaunchers();
  const Verdict verdict = harness.RunToVerdict();
  EXPECT_EQ(verdict.state, JobState::kFailed);
  EXPECT_THAT(verdict.reason, HasSubstr("SIGSEGV"));
  EXPECT_EQ(harness.Count("worker", 0, TaskState::kRunning), 3);
  EXPECT_EQ(harness.LogOf("worker", 0, 2), "attempt 2\n");
  EXPECT_EQ(verdict.tasks[0].attempts, 3);
}

TEST(Lifecycle, ACommandThatDoesNotExistSaysSo) {
  job::Role role = ShellRole("worker", 1, "");
  role.command = {"/no/such/program"};
  JobHarness harness(JobOf({role}));
  harness.StartCoordinator();
  harness.StartAllLaunchers();
  const Verdict verdict = harness.RunToVerdict();
  EXPECT_EQ(verdict.state, JobState::kFailed);
  EXPECT_THAT(verdict.reason, HasSubstr("/no/such/program"));
}

TEST(Lifecycle, DrainLetsTasksSaveAndTheJobIsCancelled) {
  JobHarness harness(JobOf({ShellRole("worker", 2,
                                      "trap 'echo saved; exit 0' TERM; echo up; "
                                      "while :; do sleep 0.01; done")}));
  harness.StartCoordinator();
  harness.StartAllLaunchers();
  harness.StartController();
  ASSERT_TRUE(harness.Until([&] {
    return harness.LogOf("worker", 0) == "up\n" && harness.LogOf("worker", 1) == "up\n";
  }));
  harness.client->Drain("Ctrl-C");
  const Verdict verdict = harness.RunToVerdict();
  EXPECT_EQ(verdict.state, JobState::kCancelled);
  EXPECT_EQ(verdict.reason, "Ctrl-C");
  EXPECT_TRUE(EndedWell(verdict, {"worker"})) << "they have saved";
  EXPECT_THAT(harness.LogOf("worker", 1), HasSubstr("saved\n"));
}

TEST(Lifecycle, AGoodEndAfterSigtermToTheLauncherIsALoss) {
  JobHarness harness(
      JobOf({ShellRole("worker", 1,
                       "[ $SHOAL_ATTEMPT = 0 ] || exit 0; trap 'echo saved; exit 0' TERM; "
                       "echo up; while :; do sleep 0.01; done")}));
  harness.StartCoordinator();
  harness.StartAllLaunchers();
  harness.StartController();
  ASSERT_TRUE(harness.Until([&] { return harness.LogOf("worker", 0) == "up\n"; }));
  harness.launchers[0]->Stop();
  ASSERT_TRUE(harness.Until([&] { return harness.launcher_exits[0].has_value(); }));
  EXPECT_EQ(*harness.launcher_exits[0], 77);
  EXPECT_FALSE(harness.verdict);
  harness.StartLauncher("worker", 0, 1);  // as the engine does
  const Verdict verdict = harness.RunToVerdict();
  EXPECT_EQ(verdict.state, JobState::kSucceeded) << verdict.reason;
  EXPECT_EQ(verdict.tasks[0].attempts, 2);
}

// Of several servers one leads: the controller of an earlier epoch was frozen and does not know it.
TEST(Lifecycle, AnEarlierLeaderIsRefused) {
  JobHarness harness(JobOf({ShellRole("worker", 1,
                                      "trap 'echo saved; exit 0' TERM; echo up; "
                                      "while :; do sleep 0.01; done")}));
  harness.StartCoordinator();
  harness.StartAllLaunchers();
  CoordinatorClientOptions earlier;
  earlier.epoch = 1;
  earlier.give_up_after = milliseconds(500);
  harness.StartController(earlier);
  ASSERT_TRUE(harness.Until([&] { return harness.LogOf("worker", 0) == "up\n"; }));
  CoordinatorClientOptions later;
  later.job_dir = harness.dir();
  later.epoch = 2;
  std::optional<Verdict> verdict;
  CoordinatorClientCallbacks calls;
  calls.on_event = [&](const JobEvent& event) {
    if (event.type == JobEvent::Type::kVerdict) verdict = event.verdict;
  };
  calls.on_closed = [](const Status&) {};
  const auto leader = CoordinatorClient::Connect(&harness.loop(), later, std::move(calls));
  ASSERT_TRUE(harness.Until([&] { return leader->connected() && !harness.client->connected(); }));
  harness.client->Kill("by the earlier leader");
  ASSERT_TRUE(harness.Until([&] { return harness.client_closed.has_value(); }));
  EXPECT_FALSE(harness.client_closed->ok());
  EXPECT_FALSE(verdict);
  leader->Drain("by the leader");
  ASSERT_TRUE(harness.Until([&] { return verdict.has_value(); }));
  EXPECT_EQ(verdict->reason, "by the leader");
  leader->AckVerdict();
  EXPECT_TRUE(harness.Until([&] { return harness.coordinator_end.has_value(); }));
}

TEST(Lifecycle, StopCancels) {
  JobHarness harness(JobOf({ShellRole("worker", 2, "echo up; exec sleep 1000")}));
  harness.StartCoordinator();
  harness.StartAllLaunchers();
  harness.StartController();
  ASSERT_TRUE(harness.Until([&] { return harness.LogOf("worker", 1) == "up\n"; }));
  harness.client->Stop("Ctrl-C twice");
  const Verdict verdict = harness.RunToVerdict();
  EXPECT_EQ(verdict.state, JobState::kCancelled);
  EXPECT_EQ(verdict.reason, "Ctrl-C twice");
}

TEST(Lifecycle, WhoDoesNotJoinIsNamedWhenGatheringFails) {
  job::Job job = JobOf({ShellRole("worker", 3, "exit 0")});
  job.limits.gather = milliseconds(150);
  JobHarness harness(job);
  harness.StartCoordinator();
  harness.StartLauncher("worker", 0);
  harness.StartLauncher("worker", 1);
  const Verdict verdict = harness.RunToVerdict();
  EXPECT_EQ(verdict.state, JobState::kFailed);
  EXPECT_FALSE(verdict.gathered);
  EXPECT_THAT(verdict.reason, HasSubstr("worker 2 did not join within 150 ms (2 of 3 tasks had)"));
  EXPECT_TRUE(
      harness.Until([&] { return harness.launcher_exits[0] && harness.launcher_exits[1]; }));
}

TEST(Lifecycle, AnyIndexGetsTheLowestFreeOne) {
  JobHarness harness(JobOf({ShellRole("worker", 3, "echo $SHOAL_INDEX")}));
  harness.StartCoordinator();
  harness.StartLauncher("worker", 1);
  ASSERT_TRUE(harness.Until([&] { return harness.coordinator_->core().MemberOf(1) != 0; }));
  harness.StartLauncher("worker", -1);
  harness.StartLauncher("worker", -1);
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(harness.LogOf("worker", i), std::to_string(i) + "\n");
}

TEST(Lifecycle, ProgressAndResultsFlowUp) {
  JobHarness harness(
      JobOf({ShellRole("worker", 1,
                       "echo '{\"progress\":{\"step\":3,\"total\":9}}' >&$SHOAL_REPORT_FD; "
                       "echo 'this is no JSON' >&$SHOAL_REPORT_FD; "
                       "echo '{\"result\":{\"loss\":0.5}}' >&$SHOAL_REPORT_FD")}));
  harness.StartCoordinator();
  harness.StartController();
  ASSERT_TRUE(harness.Until([&] { return !harness.events.empty(); }));
  harness.StartAllLaunchers();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
  int progress = 0, results = 0;
  for (const JobEvent& event : harness.events) {
    if (event.type == JobEvent::Type::kProgress) progress += GetIntOr(event.body, "step", 0) == 3;
    if (event.type == JobEvent::Type::kResult) results += GetDoubleOr(event.body, "loss", 0) == 0.5;
  }
  EXPECT_EQ(progress, 1);
  EXPECT_EQ(results, 1);
}

TEST(Lifecycle, ALostControllerStopsTheJobOrNot) {
  for (const auto loss : {job::OnControllerLoss::kStop, job::OnControllerLoss::kKeep}) {
    job::Job job = JobOf({ShellRole("worker", 1, "echo up; sleep 0.4")});
    job.on_controller_loss = loss;
    JobHarness harness(job);
    CoordinatorOptions options;
    options.limits.controller_loss = Millis(50);
    harness.StartCoordinator(std::move(options));
    harness.StartAllLaunchers();
    harness.StartController();
    ASSERT_TRUE(harness.Until([&] { return harness.LogOf("worker", 0) == "up\n"; }));
    harness.client.reset();
    ASSERT_TRUE(harness.Until([&] { return harness.coordinator_->core().verdict().has_value(); }));
    EXPECT_EQ(harness.coordinator_->core().verdict()->state,
              loss == job::OnControllerLoss::kStop ? JobState::kCancelled : JobState::kSucceeded);
  }
}

TEST(Lifecycle, MoreLogThanOneMessageOrOneQueueArrivesWhole) {
  JobHarness harness(
      JobOf({ShellRole("worker", 2,
                       "i=0; while [ $i -lt 20 ]; do head -c 300000 /dev/zero | tr '\\0' "
                       "'x'; echo; i=$((i+1)); done")}));
  harness.StartCoordinator();
  harness.StartController();
  harness.StartAllLaunchers();
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(harness.LogOf("worker", i).size(), 20u * 300'001u);
    EXPECT_EQ(harness.LogOf("worker", i), harness.Segment("worker", i));
  }
  EXPECT_TRUE(harness.logs_contiguous);
}

}  // namespace
}  // namespace shoal::rendezvous
