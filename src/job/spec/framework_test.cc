#include "job/spec/framework.h"

#include <gtest/gtest.h>

#include "job/execution/policy.h"
#include "job/file/parse.h"

namespace shoal::job {
namespace {

Job Parsed(const std::string& text) {
  auto job = ParseJob("command: [a]\n" + text, "job.yaml");
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job.ok() ? *job : Job{};
}

std::string ErrorOf(const std::string& text) {
  const auto job = ParseJob("command: [a]\n" + text, "job.yaml");
  return job.ok() ? "parsed" : job.status().message();
}

using Roles = std::vector<std::string>;

TEST(Framework, TensorflowWithAChiefEndsWithIt) {
  const Job job =
      Parsed("framework: tensorflow\nroles: {ps: 1, worker: 2, chief: 1, evaluator: 1}\n");
  EXPECT_EQ(job.success, (Success{SuccessRule::kAll, {"chief"}, 0}));
  EXPECT_EQ(job.FindRole("worker")->follows, "chief");
  EXPECT_EQ(job.FindRole("ps")->follows, "worker");
  EXPECT_EQ(job.FindRole("evaluator")->follows, "worker");
  EXPECT_EQ(job.FindRole("chief")->follows, "");
  for (const Role& role : job.roles) {
    EXPECT_EQ(role.ports, (std::vector<Port>{{"grpc", false}})) << role.name;
    EXPECT_EQ(role.restart.scope, RestartScope::kTask) << role.name;
  }
}

TEST(Framework, TensorflowWithoutAChiefEndsWithWorkerZeroOrAllWorkers) {
  Job job = Parsed("framework: tensorflow\nroles: {ps: 1, worker: 2}\n");
  EXPECT_EQ(job.success, (Success{SuccessRule::kFirst, {"worker"}, 0}));
  EXPECT_EQ(job.FindRole("worker")->follows, "");
  EXPECT_EQ(job.FindRole("ps")->follows, "worker");
  job = Parsed("framework: tensorflow\nroles: {worker: 2}\n");
  EXPECT_EQ(job.success, (Success{SuccessRule::kAll, {"worker"}, 0}));
  job = Parsed("framework: tensorflow\nroles: {ps: 1, worker: 2}\nsuccess: {count: 1}\n");
  EXPECT_EQ(job.success, (Success{SuccessRule::kCount, {"worker"}, 1}));
}

TEST(Framework, WhatTheFileSaysIsKept) {
  const Job job = Parsed(
      "framework: tensorflow\nsuccess: {all: [worker, evaluator]}\n"
      "roles: {chief: {follows: worker}, worker: {ports: [a, b]}, evaluator: 1}\n");
  EXPECT_EQ(job.FindRole("chief")->follows, "worker");
  EXPECT_EQ(job.FindRole("worker")->follows, "");
  EXPECT_EQ(job.FindRole("evaluator")->follows, "");
  EXPECT_EQ(job.FindRole("worker")->ports.size(), 2U);
}

TEST(Framework, APresetMakesNoCycle) {
  const Job job = Parsed("framework: tensorflow\nroles: {chief: {follows: worker}, worker: 2}\n");
  EXPECT_EQ(job.FindRole("worker")->follows, "");
  EXPECT_EQ(job.success.roles, Roles{"worker"});
}

TEST(Framework, PytorchCountsMasterThenWorkers) {
  Job job = Parsed("framework: pytorch\nroles: {worker: 2, master: 1, board: {follows: master}}\n");
  EXPECT_EQ(RankedRoles(job), (Roles{"master", "worker"}));
  EXPECT_EQ(job.success, (Success{SuccessRule::kAll, {"master", "worker"}, 0}));
  EXPECT_EQ(job.FindRole("worker")->ports, (std::vector<Port>{{"master", false}}));
  EXPECT_EQ(job.FindRole("board")->ports, std::vector<Port>{});
  EXPECT_EQ(job.FindRole("worker")->restart.scope, RestartScope::kJob);
  job = Parsed("framework: pytorch\nroles: {b: 2, a: 1, board: {follows: a}}\n");
  EXPECT_EQ(RankedRoles(job), (Roles{"b", "a"}));
  EXPECT_EQ(job.FindRole("a")->ports, (std::vector<Port>{{"master", false}}));
}

TEST(Framework, PsLiteGetsAScheduler) {
  const Job job =
      Parsed("framework: ps-lite\nroles: {server: {replicas: 2, env: {A: b}}, worker: 3}\n");
  ASSERT_EQ(job.roles.size(), 3U);
  const Role& scheduler = job.roles[0];
  EXPECT_EQ(scheduler.name, "scheduler");
  EXPECT_EQ(scheduler.replicas, 1);
  EXPECT_EQ(scheduler.follows, "worker");
  EXPECT_EQ(scheduler.env.at("A"), "b");
  EXPECT_EQ(job.FindRole("server")->follows, "worker");
  EXPECT_EQ(job.success.roles, Roles{"worker"});
  for (const Role& role : job.roles) {
    EXPECT_EQ(role.ports.size(), 1U) << role.name;
    EXPECT_EQ(role.restart.scope, RestartScope::kJob) << role.name;
  }
  const auto own = ParseJob(
      "framework: ps-lite\nroles:\n  server: {command: [s]}\n  worker: {command: [w]}\n", "j");
  ASSERT_TRUE(own.ok()) << own.status().message();
  EXPECT_EQ(own->FindRole("scheduler")->command, std::vector<std::string>{"s"});
}

TEST(Framework, SparkGetsAMasterAndSparksOwnPrograms) {
  const Job job = Parsed("framework: spark\nroles: {driver: 1, worker: 2}\n");
  EXPECT_EQ(job.success, (Success{SuccessRule::kAll, {"driver"}, 0}));
  EXPECT_EQ(job.FindRole("master")->follows, "driver");
  EXPECT_EQ(job.FindRole("worker")->follows, "driver");
  EXPECT_EQ(job.FindRole("driver")->command, std::vector<std::string>{});
  EXPECT_EQ(job.FindRole("driver")->ports, std::vector<Port>{});
  EXPECT_EQ(job.FindRole("worker")->command.front(), "sh");
  EXPECT_NE(ErrorOf("framework: spark\nroles: {worker: 2}\n").find("no role driver"),
            std::string::npos);
}

TEST(Framework, RabitGetsATrackerThatFollowsTheWorkers) {
  const Job job = Parsed("framework: rabit\nroles: {worker: 2}\n");
  const Role* tracker = job.FindRole("tracker");
  ASSERT_NE(tracker, nullptr);
  EXPECT_EQ(tracker->command, (std::vector<std::string>{"@shoal", "rabit-tracker"}));
  EXPECT_EQ(tracker->follows, "worker");
  EXPECT_EQ(tracker->ports, (std::vector<Port>{{"tracker", false}}));
  EXPECT_EQ(tracker->restart.scope, RestartScope::kJob);
  EXPECT_EQ(job.success, (Success{SuccessRule::kAll, {"worker"}, 0}));
  // Of any name; and a tracker of one's own.
  const Job own = Parsed("framework: rabit\nroles: {tree: 2, tracker: {command: [mine]}}\n");
  EXPECT_EQ(own.FindRole("tracker")->follows, "tree");
  EXPECT_EQ(own.FindRole("tracker")->command, std::vector<std::string>{"mine"});
  EXPECT_EQ(own.success.roles, std::vector<std::string>{"tree"});
  EXPECT_NE(ErrorOf("framework: rabit\nroles: {worker: 2, tracker: 2}\n").find("one tracker"),
            std::string::npos);
}

TEST(Framework, HorovodGetsAStoreThatFollowsTheWorkers) {
  const Job job = Parsed("framework: horovod\nroles: {worker: 2}\n");
  const Role* store = job.FindRole("rendezvous");
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->command, (std::vector<std::string>{"@shoal", "horovod-rendezvous"}));
  EXPECT_EQ(store->follows, "worker");
  EXPECT_EQ(store->ports, (std::vector<Port>{{"rendezvous", false}}));
  EXPECT_EQ(store->restart.scope, RestartScope::kJob);
  EXPECT_EQ(job.success, (Success{SuccessRule::kAll, {"worker"}, 0}));
}

TEST(Framework, MpiGetsALauncherThatTheWorkersFollow) {
  const Job job = Parsed("framework: mpi\nroles: {worker: {replicas: 2, ports: [metrics]}}\n");
  const Role* launcher = job.FindRole("launcher");
  ASSERT_NE(launcher, nullptr);
  EXPECT_EQ(launcher->command, std::vector<std::string>{});  // the job's
  EXPECT_EQ(launcher->ports, std::vector<Port>{});
  EXPECT_EQ(launcher->restart.scope, RestartScope::kJob);
  // MPICH's word for what others say by 128 and the signal.
  ASSERT_EQ(launcher->on_log.size(), 1u);
  EXPECT_EQ(launcher->on_log[0].action, EndAction::kRetry);
  EXPECT_TRUE(LineMatches(launcher->on_log[0].line,
                          "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"));
  const Job never =
      Parsed("framework: mpi\nroles: {launcher: {restart: {when: never}}, worker: 2}\n");
  EXPECT_TRUE(never.FindRole("launcher")->on_log.empty());
  const Role* worker = job.FindRole("worker");
  EXPECT_EQ(worker->command, (std::vector<std::string>{"@shoal", "mpi-worker"}));
  EXPECT_EQ(worker->follows, "launcher");
  EXPECT_EQ(worker->ports, (std::vector<Port>{{"metrics", false}, {"mpi", false}}));
  EXPECT_EQ(job.success, (Success{SuccessRule::kAll, {"launcher"}, 0}));
  EXPECT_NE(ErrorOf("framework: mpi\nroles: {launcher: 1}\n").find("got no role worker"),
            std::string::npos);
  EXPECT_NE(ErrorOf("framework: mpi\nroles: {launcher: 2, worker: 2}\n").find("calls mpirun"),
            std::string::npos);
}

TEST(Framework, JobsThatCouldNeverFormAClusterAreRefused) {
  EXPECT_EQ(
      ErrorOf("framework: ps-lite\nroles: {worker: 2}\n"),
      "job.yaml:3:1: roles: got no role server, expected at least 1 server: ps-lite waits for "
      "workers and servers");
  EXPECT_EQ(ErrorOf("framework: ps-lite\nroles: {worker: 2, server: 1, scheduler: 2}\n"),
            "job.yaml:3:42: roles.scheduler.replicas: got 2, expected at most 1 with framework "
            "ps-lite: one scheduler gives out the ranks");
  EXPECT_EQ(ErrorOf("framework: tensorflow\nroles: {worker: 2, chief: 2}\n"),
            "job.yaml:3:27: roles.chief.replicas: got 2, expected at most 1 with framework "
            "tensorflow: one chief leads the job");
  EXPECT_EQ(ErrorOf("framework: tensorflow\nroles: {master: 1, chief: 1}\n"),
            "job.yaml:3:9: roles.master: got a master beside a chief, expected one of them to lead "
            "the job");
  EXPECT_EQ(
      ErrorOf("framework: pytorch\nroles: {worker: {replicas: 2, env: {RANK: \"3\"}}}\n"),
      "job.yaml:3:36: roles.worker.env: got RANK, which framework pytorch sets itself from the "
      "addresses of the tasks; leave it out, or use framework generic");
  EXPECT_EQ(ErrorOf("framework: pytorch\nenv: {TF_CONFIG: x}\n"), "parsed");
}

}  // namespace
}  // namespace shoal::job
