#include "learn/task/task.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace shoal::learn {
namespace {

constexpr const char* kCluster =
    R"({"generation":3,"roles":{"server":["127.0.0.1:4001","127.0.0.1:4002"],)"
    R"("worker":["127.0.0.1:0","127.0.0.1:0","10.0.0.2:0"]}})";

class TaskTest : public testing::Test {
 protected:
  TaskTest() {
    EXPECT_TRUE(WriteFileAtomically(dir_.path() / "token", "secret\n", 0600, false).ok());
    env_ = {
        {"SHOAL_CLUSTER", kCluster},
        {"SHOAL_INDEX", "1"},
        {"SHOAL_ATTEMPT", "2"},
        {"SHOAL_TOKEN_FILE", (dir_.path() / "token").string()},
        {"SHOAL_JOB_DIR", dir_.path().string()},
        {"SHOAL_LEARN", R"({"algorithm":"word2vec","dim":"50"})"},
        {"SHOAL_DATA", R"([{"name":"train","sources":["a","b"]},{"name":"x","sources":["c"]}])"},
        {"SHOAL_OUTPUTS", R"({"model":"/tmp/out"})"},
        {"SHOAL_CHECKPOINT", R"({"every_ms":60000,"keep":3})"}};
  }
  std::string ErrorOf(const std::string& role = "worker") {
    const auto task = Task::Make(role, env_);
    return task.ok() ? "" : task.status().message();
  }

  TempDir dir_ = std::move(*TempDir::Create());
  Environment env_;
};

TEST_F(TaskTest, ReadsEndedWorkersFromTheFile) {
  const std::string file = (dir_.path() / "cluster.json").string();
  env_["SHOAL_CLUSTER_FILE"] = file;
  const auto write = [&](const std::string& ended) {
    std::string text = kCluster;
    text.insert(1, "\"ended\":{\"worker\":" + ended + "},");
    EXPECT_TRUE(WriteFileAtomically(file, text, 0600, false).ok());
  };
  write("[2]");
  const auto made = Task::Make("worker", env_);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ((*made)->EndedWorkers(), std::vector<int>{2});
  write("[0,2]");
  EXPECT_EQ((*made)->EndedWorkers(), (std::vector<int>{0, 2}));
  write("[7]");  // no worker: the previous list stays
  EXPECT_EQ((*made)->EndedWorkers(), (std::vector<int>{0, 2}));
  EXPECT_EQ((*made)->members().Current().servers.size(), 2u);
}

TEST_F(TaskTest, ThreadsFollowTheRoleAndTheMachine) {
  auto task = std::move(*Task::Make("worker", env_));
  task->cores = 8;
  EXPECT_EQ(task->DefaultThreads(), 4);  // two workers on this host
  env_["SHOAL_CPUS"] = "1";
  EXPECT_EQ(std::move(*Task::Make("worker", env_))->DefaultThreads(), 1);
  env_["SHOAL_CPUS"] = "2.5";
  task = std::move(*Task::Make("worker", env_));
  task->cores = 8;
  EXPECT_EQ(task->DefaultThreads(), 2);
  task->cores = 0.5;  // a quota
  EXPECT_EQ(task->DefaultThreads(), 1);
  for (const char* const bad : {"0", "-1", "two", "nan", "2x"}) {
    env_["SHOAL_CPUS"] = bad;
    EXPECT_NE(ErrorOf().find("SHOAL_CPUS: got "), std::string::npos) << bad;
  }
}

TEST_F(TaskTest, ReadsTheEnvironment) {
  const auto made = Task::Make("worker", env_);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Task& task = **made;
  EXPECT_EQ(task.index, 1);
  EXPECT_EQ(task.attempt, 2);
  EXPECT_EQ(task.workers, 3);
  EXPECT_EQ(task.servers, 2);
  EXPECT_EQ(task.workers_on_this_host, 2);
  EXPECT_EQ(task.token, "secret");
  EXPECT_EQ(task.learn.at("dim").text, "50");
  EXPECT_EQ(task.sources, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(task.output, "/tmp/out");
  EXPECT_EQ(task.checkpoint_every, std::chrono::minutes(1));
  EXPECT_EQ(task.checkpoint_keep, 3);
  EXPECT_EQ(task.checkpoint_dir, dir_.path() / "checkpoints");
  EXPECT_TRUE(task.EndedWorkers().empty());
  const ps::MemberView view = task.members().Current();
  EXPECT_EQ(view.generation, 3);
  EXPECT_EQ(view.workers, 3);
  EXPECT_EQ(view.servers, (std::vector<std::string>{"127.0.0.1:4001", "127.0.0.1:4002"}));
}

TEST_F(TaskTest, WithoutCheckpointsThereIsNoDirectoryForThem) {
  env_["SHOAL_CHECKPOINT"] = R"({"every_ms":0,"keep":2})";
  const auto task = Task::Make("worker", env_);
  ASSERT_TRUE(task.ok());
  EXPECT_TRUE((*task)->checkpoint_dir.empty());
}

TEST_F(TaskTest, TheClusterFileIsReadAgainWhenItChanges) {
  const std::filesystem::path file = dir_.path() / "cluster.json";
  ASSERT_TRUE(WriteFileAtomically(file, kCluster, 0644, false).ok());
  env_["SHOAL_CLUSTER_FILE"] = file.string();
  const auto task = Task::Make("worker", env_);
  ASSERT_TRUE(task.ok());
  ps::Members& members = (*task)->members();
  EXPECT_EQ(members.Current().servers[1], "127.0.0.1:4002");
  ASSERT_TRUE(WriteFileAtomically(
                  file, R"({"generation":4,"roles":{"server":["h:1","h:2"],"worker":["h:0"]}})",
                  0644, false)
                  .ok());
  EXPECT_EQ(members.Current().generation, 4);
  EXPECT_EQ(members.Current().servers[1], "h:2");
  // A truncated or missing file keeps the last valid description.
  ASSERT_TRUE(WriteFileAtomically(file, R"({"generation":5,)", 0644, false).ok());
  EXPECT_EQ(members.Current().generation, 4);
  std::filesystem::remove(file);
  EXPECT_EQ(members.Current().generation, 4);
}

TEST_F(TaskTest, TasksOfElasticRolesThatAreNotThereHaveNoAddress) {
  env_["SHOAL_CLUSTER"] =
      R"({"generation":1,"roles":{"server":["h:1","h:2",":0"],"worker":["h:0",":0","h:0"]}})";
  const auto first = Task::Make("server", env_);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ((*first)->servers, 2);
  EXPECT_EQ((*first)->life, (*first)->attempt);
  EXPECT_EQ((*first)->members().Current().servers, (std::vector<std::string>{"h:1", "h:2", ""}));
  EXPECT_TRUE((*first)->HasLiveWorkers());
  // The one that joined, and a worker has ended.
  env_["SHOAL_CLUSTER"] =
      R"({"generation":2,"roles":{"server":["h:1","h:2","h:3"],"worker":["h:0",":0","h:0"]},)"
      R"("ended":{"worker":[0,2]}})";
  env_["SHOAL_INDEX"] = "2";
  const auto third = Task::Make("server", env_);
  ASSERT_TRUE(third.ok()) << third.status().message();
  EXPECT_EQ((*third)->servers, 3);
  EXPECT_GT((*third)->life, (*first)->life);
  EXPECT_FALSE((*third)->HasLiveWorkers());
  env_["SHOAL_CLUSTER"] =
      R"({"generation":2,"roles":{"server":["h:1","h:2","h:3"],"worker":["h:0"]},"ending":true})";
  const auto last = Task::Make("server", env_);
  ASSERT_TRUE(last.ok()) << last.status().message();
  EXPECT_FALSE((*last)->HasLiveWorkers()) << "nobody needs its rows any more";
}

TEST_F(TaskTest, NamesMissingVariables) {
  env_.erase("SHOAL_CLUSTER");
  EXPECT_NE(ErrorOf().find("run by Shoal inside a job"), std::string::npos);
  env_["SHOAL_CLUSTER"] = kCluster;
  env_["SHOAL_INDEX"] = "7";
  EXPECT_NE(ErrorOf().find("SHOAL_INDEX: got 7, expected less than 3"), std::string::npos);
  env_["SHOAL_INDEX"] = "x";
  EXPECT_NE(ErrorOf().find("SHOAL_INDEX: got x"), std::string::npos);
  env_["SHOAL_INDEX"] = "0";
  env_.erase("SHOAL_TOKEN_FILE");
  EXPECT_NE(ErrorOf().find("SHOAL_TOKEN_FILE"), std::string::npos);
}

TEST_F(TaskTest, HostileDescriptionsAreErrors) {
  for (const char* cluster : {"", "[]", "{", R"({"roles":3})", R"({"roles":{"server":"a"}})",
                              R"({"roles":{"worker":[1]}})"}) {
    env_["SHOAL_CLUSTER"] = cluster;
    EXPECT_FALSE(Task::Make("worker", env_).ok()) << cluster;
  }
  env_["SHOAL_CLUSTER"] = kCluster;
  for (const char* data : {"{}", "[1]", "[{}]", "["}) {
    env_["SHOAL_DATA"] = data;
    EXPECT_FALSE(Task::Make("worker", env_).ok()) << data;
  }
}

TEST(Reporter, WritesLinesThatFitAPipe) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd read_end(fds[0]);
  const UniqueFd write_end(fds[1]);
  const Reporter reporter(write_end.get());
  reporter.Progress({{"step", 5}, {"phase", "train"}});
  reporter.Result({{"output", std::string(5000, 'x')}});  // would not be atomic: left out
  reporter.Event({{"a", 1}});
  char buffer[8192];
  const ssize_t got = read(read_end.get(), buffer, sizeof buffer);
  ASSERT_GT(got, 0);
  EXPECT_EQ(std::string(buffer, static_cast<size_t>(got)),
            "{\"progress\":{\"step\":5,\"phase\":\"train\"}}\n{\"event\":{\"a\":1}}\n");
  Reporter(-1).Progress({{"step", 5}});
}

}  // namespace
}  // namespace shoal::learn
