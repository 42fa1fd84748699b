#include "job/execution/plan.h"

#include <gtest/gtest.h>

#include "job/file/parse.h"

namespace shoal::job {
namespace {

Job Parsed(std::string_view text) {
  auto job = ParseJob(text, "job.yaml");
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job.ok() ? *job : Job{};
}

TEST(Plan, RolesBecomeTasksInOrder) {
  const Job job = Parsed(
      "command: [a]\nenv: {X: job, Y: job}\nroles:\n"
      "  worker: {replicas: 2, env: {X: role}, resources: {cpu: 0.5, memory: 1Gi, gpu: 2}}\n"
      "  chief: {command: [b]}\n");
  const auto plan = MakePlan(job);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->tasks.size(), 3u);
  EXPECT_EQ(plan->tasks[1].role, "worker");
  EXPECT_EQ(plan->tasks[1].index, 1);
  EXPECT_EQ(plan->tasks[1].env, (std::map<std::string, std::string>{{"X", "role"}, {"Y", "job"}}));
  EXPECT_EQ(plan->tasks[2].command, std::vector<std::string>{"b"});
  EXPECT_EQ(plan->total, (Resources{1.0, int64_t{2} << 30, 4}));
}

TEST(Plan, NeverShowsSecrets) {
  const Job job = Parsed(
      "command: [a, --password, hunter1, --token=hunter2, 's3://key:hunter3@host/x', --keep, x]\n"
      "env: {AWS_SECRET_ACCESS_KEY: hunter4, HF_TOKEN: hunter5, URL: 'postgres://u:hunter6@h/d',\n"
      "      TOKENIZERS_PARALLELISM: shown1, MONKEY: shown2}\n");
  const auto plan = MakePlan(job);
  ASSERT_TRUE(plan.ok());
  for (const std::string& text : {PrintPlan(job, *plan), ToText(PlanToJson(job, *plan))}) {
    EXPECT_EQ(text.find("hunter"), std::string::npos) << text;
    EXPECT_NE(text.find("shown1"), std::string::npos);
    EXPECT_NE(text.find("shown2"), std::string::npos);
    EXPECT_NE(text.find("postgres://u:***@h/d"), std::string::npos);
  }
}

TEST(Plan, ManyTasksAreOneLine) {
  const Job job = Parsed("command: [a]\nroles: {worker: 100000}\n");
  const auto plan = MakePlan(job);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->tasks.size(), 100'000u);
  const std::string text = PrintPlan(job, *plan);
  EXPECT_NE(text.find("worker 15 to 99999, each"), std::string::npos) << text;
  EXPECT_LT(text.size(), 4000u);
}

TEST(Plan, AJobThatNobodyCheckedIsRefused) {
  Job job;
  job.roles.emplace_back().name = "worker";
  EXPECT_EQ(MakePlan(job).status().code(), Code::kInvalidArgument);
  job.command = {"a"};
  EXPECT_TRUE(MakePlan(job).ok());
  job.roles[0].replicas = kMaxTasks;
  job.roles.push_back(job.roles[0]);
  EXPECT_EQ(MakePlan(job).status().code(), Code::kInvalidArgument);
}

TEST(FormatBytes, ForPeople) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(int64_t{512} << 20), "512 MiB");
  EXPECT_EQ(FormatBytes(int64_t{3} << 29), "1.5 GiB");
}

}  // namespace
}  // namespace shoal::job
