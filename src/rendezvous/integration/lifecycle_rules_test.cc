// Several processes per task, restart scopes, order and readiness, rules for ends and lines: real
// programs under the real coordinator and launchers, in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rendezvous/integration/job_harness.h"

namespace shoal::rendezvous {
namespace {

using job::JobState;
using job::TaskState;
using std::chrono::milliseconds;
using testing::HasSubstr;

Verdict RunAll(JobHarness* harness) {
  harness->StartCoordinator();
  harness->StartController();
  harness->StartAllLaunchers();
  return harness->RunToVerdict();
}

TEST(Processes, EachHasItsRankAndItsLinesItsNumber) {
  job::Role role = ShellRole("worker", 1, "echo rank $SHOAL_LOCAL_RANK of $SHOAL_LOCAL_SIZE");
  role.processes = 3;
  JobHarness harness(JobOf({role}));
  EXPECT_EQ(RunAll(&harness).state, JobState::kSucceeded) << harness.verdict->reason;
  const std::string& log = harness.LogOf("worker", 0);
  for (const char* line : {"[0] rank 0 of 3\n", "[1] rank 1 of 3\n", "[2] rank 2 of 3\n"}) {
    EXPECT_THAT(log, HasSubstr(line));
  }
  EXPECT_EQ(log.size(), 3 * std::string("[0] rank 0 of 3\n").size());
}

TEST(Processes, TheFirstThatFailsEndsTheTaskAndIsNamed) {
  job::Role role =
      ShellRole("worker", 1,
                "if [ $SHOAL_LOCAL_RANK = 1 ]; then echo no memory; exit 9; fi; "
                "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.01; done");
  role.processes = 3;
  JobHarness harness(JobOf({role}));
  const Verdict verdict = RunAll(&harness);
  EXPECT_EQ(verdict.state, JobState::kFailed);
  EXPECT_THAT(verdict.reason, HasSubstr("worker 0 exited with 9 in its process 1"));
  EXPECT_THAT(verdict.reason, HasSubstr("its last line was: no memory"));
}

TEST(Processes, ADrainReachesAllOfThem) {
  job::Role role = ShellRole(
      "worker", 1, "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.01; done");
  role.processes = 4;
  JobHarness harness(JobOf({role}));
  harness.StartCoordinator();
  harness.StartController();
  harness.StartAllLaunchers();
  const auto count = [&](const std::string& word) {
    size_t n = 0;
    const std::string& log = harness.LogOf("worker", 0);
    for (size_t at = log.find(word); at != std::string::npos; at = log.find(word, at + 1)) ++n;
    return n;
  };
  ASSERT_TRUE(harness.Until([&] { return count("up\n") == 4; }));
  harness.client->Drain("enough");
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kCancelled) << harness.verdict->reason;
  EXPECT_TRUE(EndedWell(*harness.verdict, {"worker"}));
  EXPECT_EQ(count("saved\n"), 4u);
}

TEST(Elastic, ARoleGrowsAndShrinksUnderRunningPrograms) {
  job::Role role = ShellRole("worker", 1,
                             "trap 'echo saved; exit 0' TERM; echo up; "
                             "while :; do sleep 0.01; done");
  role.max_replicas = 3;
  JobHarness harness(JobOf({role}));
  harness.StartCoordinator();
  harness.StartController();
  harness.StartLauncher("worker", 0);
  const auto up = [&](int index, int attempt = 0) {
    return harness.Until([&, index, attempt] {
      return harness.LogOf("worker", index, attempt).find("up\n") != std::string::npos;
    });
  };
  ASSERT_TRUE(up(0));
  harness.client->Scale("worker", 3, "a test");
  ASSERT_TRUE(harness.Until([&] {
    return std::any_of(harness.events.begin(), harness.events.end(),
                       [](const JobEvent& event) { return event.type == JobEvent::Type::kScaled; });
  }));
  harness.StartLauncher("worker", 1);
  harness.StartLauncher("worker", 2);
  ASSERT_TRUE(up(1));
  ASSERT_TRUE(up(2));
  EXPECT_EQ(harness.coordinator_->core().Cluster().FindRole("worker")->members.size(), 3u);
  harness.client->Scale("worker", 1, "a test");
  ASSERT_TRUE(
      harness.Until([&] { return harness.launcher_exits[1] && harness.launcher_exits[2]; }));
  EXPECT_EQ(*harness.launcher_exits[1], 0);
  EXPECT_EQ(*harness.launcher_exits[2], 0);
  EXPECT_THAT(harness.LogOf("worker", 2), HasSubstr("saved"));
  EXPECT_FALSE(harness.launcher_exits[0]);
  harness.client->Drain("enough");
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kCancelled) << harness.verdict->reason;
  EXPECT_TRUE(EndedWell(*harness.verdict, {"worker"}));
}

TEST(Limits, TheJobsLastRestartIsTheLastThoughTheTaskHadMore) {
  job::Role role = ShellRole("worker", 2,
                             "echo attempt $SHOAL_ATTEMPT; test $SHOAL_INDEX = 0 && kill -KILL $$; "
                             "while :; do sleep 0.01; done");
  role.restart.limit = 2;
  role.restart.backoff = milliseconds(1);
  job::Job job = JobOf({role});
  job.limits.restarts = 1;
  JobHarness harness(job);
  const Verdict verdict = RunAll(&harness);
  EXPECT_EQ(verdict.state, JobState::kFailed);
  EXPECT_THAT(verdict.reason, HasSubstr("'limits: restarts' allows 1"));
  EXPECT_EQ(harness.LogOf("worker", 0, 0), "attempt 0\n");
  EXPECT_EQ(harness.LogOf("worker", 0, 1), "attempt 1\n");
  EXPECT_EQ(harness.LogOf("worker", 0, 2), "");
}

TEST(Scopes, AJobThatRestartsAsAWholeFindsItsNewGeneration) {
  job::Role role = ShellRole("worker", 3,
                             "echo generation $SHOAL_GENERATION; if [ $SHOAL_ATTEMPT = 0 ]; then "
                             "if [ $SHOAL_INDEX = 2 ]; then sleep 0.05; kill -KILL $$; fi; "
                             "while :; do sleep 0.01; done; fi");
  role.restart.scope = job::RestartScope::kJob;
  role.restart.backoff = milliseconds(5);
  JobHarness harness(JobOf({role}));
  EXPECT_EQ(RunAll(&harness).state, JobState::kSucceeded) << harness.verdict->reason;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(harness.LogOf("worker", i, 0), "generation 1\n");
    EXPECT_EQ(harness.LogOf("worker", i, 1), "generation 2\n");
    EXPECT_EQ(harness.Count("worker", i, TaskState::kRunning), 2);
  }
  const auto told =
      std::any_of(harness.events.begin(), harness.events.end(), [](const JobEvent& one) {
        return one.type == JobEvent::Type::kNote &&
               one.text.find(
                   "worker 2 was killed by signal 9 (SIGKILL); all tasks of the job are "
                   "started again (restart 1 of 3") == 0;
      });
  EXPECT_TRUE(told);
}

TEST(Scopes, WhoHasEndedComesBackWithTheOthers) {
  job::Role role = ShellRole("worker", 2,
                             "echo up; test $SHOAL_ATTEMPT = 1 && exit 0; test $SHOAL_INDEX = 0 && "
                             "exit 0; while test ! -e $SHOAL_JOB_DIR/go; do sleep 0.01; done; "
                             "kill -KILL $$");
  role.restart.scope = job::RestartScope::kRole;
  role.restart.backoff = milliseconds(5);
  JobHarness harness(JobOf({role}));
  harness.StartCoordinator();
  harness.StartController();
  harness.StartAllLaunchers();
  ASSERT_TRUE(harness.Until([&] { return harness.Count("worker", 0, TaskState::kEnded) == 1; }));
  EXPECT_FALSE(harness.launcher_exits[0]) << "it may be needed again";
  ASSERT_TRUE(WriteFileAtomically(harness.dir() + "/go", "", 0600, false).ok());
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded) << harness.verdict->reason;
  EXPECT_EQ(harness.LogOf("worker", 0, 1), "up\n");
  EXPECT_TRUE(
      harness.Until([&] { return harness.launcher_exits[0] && harness.launcher_exits[1]; }));
  EXPECT_EQ(harness.launcher_exits[0], 0);
}

TEST(Order, WorkersStartWhenTheServersLineHasCome) {
  job::Role server = ShellRole("server", 2, "sleep 0.1; echo 'serving at 1'; sleep 1000");
  server.follows = "worker";
  server.ready.by = job::ReadyBy::kLog;
  server.ready.line = "serving at *";
  job::Role worker = ShellRole("worker", 2, "exit 0");
  worker.after.roles = {"server"};
  JobHarness harness(JobOf({worker, server}));
  EXPECT_EQ(RunAll(&harness).state, JobState::kSucceeded) << harness.verdict->reason;
  for (int i = 0; i < 2; ++i) {
    EXPECT_GE(*harness.When("worker", i, TaskState::kRunning) -
                  *harness.When("server", 0, TaskState::kRunning),
              milliseconds(80));
  }
}

TEST(Order, WhoDoesNotBecomeReadyIsKilledAndSaysWhy) {
  job::Role server = ShellRole("server", 1, "sleep 1000");
  server.follows = "worker";
  server.ports = {{"http", false}};
  server.ready.by = job::ReadyBy::kTcp;
  server.ready.port = "http";
  server.ready.timeout = milliseconds(60);
  server.restart.limit = 0;
  job::Role worker = ShellRole("worker", 1, "exit 0");
  worker.after.roles = {"server"};
  JobHarness harness(JobOf({worker, server}));
  const Verdict verdict = RunAll(&harness);
  EXPECT_EQ(verdict.state, JobState::kFailed);
  EXPECT_THAT(verdict.reason, HasSubstr("server 0 was killed by signal 9 (SIGKILL): it was not "
                                        "ready within 60 ms: nothing takes connections at port"));
  EXPECT_EQ(harness.Count("worker", 0, TaskState::kRunning), 0);
}

TEST(Order, ACommandSeesTheTasksEnvironment) {
  job::Role server = ShellRole("server", 1, "sleep 0.05; touch $SHOAL_SCRATCH/up; sleep 1000");
  server.follows = "worker";
  server.ready.by = job::ReadyBy::kCommand;
  server.ready.command = {"/bin/sh", "-c", "test -e $SHOAL_SCRATCH/up"};
  server.ready.every = milliseconds(10);
  job::Role worker = ShellRole("worker", 1, "exit 0");
  worker.after.roles = {"server"};
  JobHarness harness(JobOf({worker, server}));
  EXPECT_EQ(RunAll(&harness).state, JobState::kSucceeded) << harness.verdict->reason;
}

job::Job OneWithAPort(const std::string& script, bool plain) {
  job::Role role = ShellRole("worker", 1, script);
  role.ports = {{"main", plain}};
  role.restart.when = job::RestartWhen::kNever;
  return JobOf({role});
}

TEST(Ports, WhoOnlyHoldsAPortIsFoundWhenTheProgramHasFailed) {
  JobHarness harness(
      OneWithAPort("test $SHOAL_ATTEMPT = 0 || exit 0; echo up; "
                   "while [ ! -e \"$SHOAL_JOB_DIR/held\" ]; do sleep 0.01; done; exit 1",
                   true));
  harness.StartCoordinator();
  harness.StartController();
  harness.StartAllLaunchers();
  ASSERT_TRUE(harness.Until([&] { return !harness.LogOf("worker", 0).empty(); }));
  const uint16_t port = harness.coordinator_->core().Cluster().roles[0].members[0].ports[0];
  const UniqueFd holder(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ASSERT_EQ(::bind(holder.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_TRUE(WriteFileAtomically(harness.dir() + "/held", "", 0600, false).ok());
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded) << harness.verdict->reason;
  EXPECT_NE(harness.coordinator_->core().Cluster().roles[0].members[0].ports[0], port);
}

TEST(Ports, AProgramIsBelievedAFewTimesThatItsPortWasTaken) {
  for (const int attempts : {3, 9}) {
    JobHarness harness(OneWithAPort("test $SHOAL_ATTEMPT = " + std::to_string(attempts) +
                                        " && exit 0; echo 'bind: Address already in use'; exit 7",
                                    false));
    EXPECT_EQ(RunAll(&harness).state, attempts == 3 ? JobState::kSucceeded : JobState::kFailed);
    EXPECT_EQ(harness.verdict->tasks[0].attempts, 4);
    if (attempts != 9) continue;
    EXPECT_THAT(harness.verdict->reason, testing::HasSubstr("exited with 7"));
  }
}

TEST(Ports, AThiefIsNamedAndAllStartAgainElsewhere) {
  job::Role role = ShellRole("worker", 2,
                             "echo at $SHOAL_PORT; test $SHOAL_ATTEMPT = 0 || exit 0; "
                             "trap '' TERM; while :; do sleep 0.01; done");
  role.ports = {{"main", false}};
  role.restart.when = job::RestartWhen::kNever;
  JobHarness harness(JobOf({role}));
  harness.StartCoordinator();
  harness.StartController();
  harness.StartAllLaunchers();
  ASSERT_TRUE(harness.Until([&] { return !harness.LogOf("worker", 1).empty(); }));
  const auto before = harness.coordinator_->core().Cluster().roles[0].members;
  // A process of the same user, which alone may bind beside a lease with SO_REUSEPORT.
  UniqueFd thief(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(thief.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(before[1].ports[0]);
  ASSERT_EQ(::bind(thief.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(thief.get(), 8), 0);
  const TimePoint port_conflict = RealClock::Get()->Now();
  ASSERT_TRUE(harness.Until([&] {
    return harness.Count("worker", 0, TaskState::kEnded) > 0 &&
           harness.Count("worker", 1, TaskState::kEnded) > 0;
  }));
  EXPECT_LT(RealClock::Get()->Now() - port_conflict, std::chrono::seconds(2));
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded) << harness.verdict->reason;
  EXPECT_NE(harness.LogOf("worker", 1, 1), harness.LogOf("worker", 1, 0));
  EXPECT_EQ(harness.LogOf("worker", 0, 1), harness.LogOf("worker", 0, 0));
  const std::string named = "worker 1: its port " + std::to_string(before[1].ports[0]) +
                            " is taken: process " + std::to_string(::getpid()) +
                            " (rendezvous_test)";
  const auto told =
      std::any_of(harness.events.begin(), harness.events.end(), [&](const JobEvent& one) {
        return one.type == JobEvent::Type::kNote && one.text.find(named) == 0;
      });
  EXPECT_TRUE(told);
}

TEST(Rules, ALineEndsATaskThatHangsAndItIsTriedAgain) {
  job::Role role = ShellRole("worker", 1,
                             "test $SHOAL_ATTEMPT = 1 && exit 0; echo 'NCCL error: 3'; "
                             "trap 'exit 0' TERM; while :; do sleep 0.01; done");
  role.on_log = {{"NCCL error*", job::EndAction::kRetry}};
  role.restart.backoff = milliseconds(5);
  JobHarness harness(JobOf({role}));
  EXPECT_EQ(RunAll(&harness).state, JobState::kSucceeded) << harness.verdict->reason;
  EXPECT_EQ(harness.verdict->tasks[0].attempts, 2);
}

TEST(Rules, AHostIsLeftAndTheTaskGoesOnElsewhere) {
  job::Role role = ShellRole("worker", 1, "test $SHOAL_ATTEMPT = 1 || { echo no device; exit 3; }");
  role.on_log = {{"no device", job::EndAction::kExcludeHost}};
  role.restart.backoff = milliseconds(5);
  JobHarness harness(JobOf({role}));
  harness.StartCoordinator();
  harness.StartController();
  harness.SetNode("bad");
  harness.StartLauncher("worker", 0);
  ASSERT_TRUE(harness.Until([&] { return harness.launcher_exits[0].has_value(); }));
  EXPECT_EQ(harness.launcher_exits[0], job::kExitHostExcluded);
  // Engine and controller know the reason before the launcher leaves.
  const bool told =
      std::any_of(harness.events.begin(), harness.events.end(), [](const JobEvent& one) {
        return one.type == JobEvent::Type::kExcluded && GetStringOr(one.body, "host", "") == "bad";
      });
  EXPECT_TRUE(told);
  EXPECT_EQ(harness.LogOf("worker", 0), "no device\n");
  harness.StartLauncher("worker", 0, 1);
  ASSERT_TRUE(harness.Until([&] { return harness.launcher_exits[1].has_value(); }));
  EXPECT_EQ(harness.launcher_exits[1], job::kExitHostExcluded);
  harness.SetNode("good");
  harness.StartLauncher("worker", 0, 2);
  EXPECT_EQ(harness.RunToVerdict().state, JobState::kSucceeded) << harness.verdict->reason;
  EXPECT_EQ(harness.verdict->tasks[0].attempts, 2);
}

TEST(Rules, OfExitCodes) {
  job::Role role =
      ShellRole("worker", 2, "test $SHOAL_INDEX = 0 && exit 40; test $SHOAL_ATTEMPT = 1 || exit 3");
  role.on_exit = {{"40", job::EndAction::kIgnore}, {"3", job::EndAction::kRetry}};
  role.restart.backoff = milliseconds(5);
  JobHarness harness(JobOf({role}));
  EXPECT_EQ(RunAll(&harness).state, JobState::kSucceeded) << harness.verdict->reason;
  EXPECT_EQ(harness.verdict->tasks[0].attempts, 1);
  EXPECT_EQ(harness.verdict->tasks[1].attempts, 2);
}

}  // namespace
}  // namespace shoal::rendezvous
