#include "rendezvous/launcher/task_secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "framework/framework_environment.h"
#include "job/execution/job_dir.h"
#include "job/spec/cluster_reference.h"

namespace shoal::rendezvous {
namespace {

using testing::HasSubstr;
using testing::Not;
using Variables = std::vector<std::pair<std::string, std::string>>;

class TaskSecrets : public testing::Test {
 protected:
  TaskSecrets() { std::filesystem::create_directories(root_); }
  ~TaskSecrets() override { std::filesystem::remove_all(root_); }

  void Deliver(const SecretValues& values) {
    ASSERT_TRUE(
        WriteFileAtomically(job::JobDir(root_).secrets(), SecretsText(values), 0600, false).ok());
  }

  const std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("task-secrets." + std::to_string(::getpid()));
  const AttemptPaths paths_{root_.string(), "/scratch", (root_ / "worker-0.cluster.json").string(),
                            "", ""};
};

TEST_F(TaskSecrets, VariablesWithoutMarksNeedNoFile) {
  Variables variables{{"A", "plain"}, {"B", "@shoal-output/x"}};
  const Variables before = variables;
  ASSERT_TRUE(FillInSecrets(paths_, &variables).ok());
  EXPECT_EQ(variables, before);
}

TEST_F(TaskSecrets, ValuesTakeThePlaceOfMarks) {
  // A value that looks like a mark stays as it is.
  Deliver({{"db", "hunter2"},
           {"odd", job::SecretMark("db", false)},
           {"raw", std::string("\0\xff", 2)}});
  Variables variables{{"URL", "postgres://app:" + job::SecretMark("db", false) + "@h/" +
                                  job::SecretMark("db", false)},
                      {"ODD", job::SecretMark("odd", false)},
                      {"NOT_ONE", "@shoal-secret:no closing and @shoal-secrets:db@"},
                      {"FILE", job::SecretMark("raw", true)}};
  ASSERT_TRUE(FillInSecrets(paths_, &variables).ok());
  EXPECT_EQ(variables[0].second, "postgres://app:hunter2@h/hunter2");
  EXPECT_EQ(variables[1].second, job::SecretMark("db", false));
  EXPECT_EQ(variables[2].second, "@shoal-secret:no closing and @shoal-secrets:db@");
  EXPECT_EQ(variables[3].second, paths_.secrets() + "/raw");
  EXPECT_EQ(ReadFile(variables[3].second, 10).value(), std::string("\0\xff", 2));
  const auto mode = std::filesystem::status(variables[3].second).permissions();
  EXPECT_EQ(mode, std::filesystem::perms(0600));
  EXPECT_EQ(std::filesystem::status(paths_.secrets()).permissions(), std::filesystem::perms(0700));
  RemoveTaskDirectories(paths_);
  EXPECT_FALSE(std::filesystem::exists(paths_.secrets()));
}

TEST_F(TaskSecrets, ErrorsNameTheVariableAndNoValue) {
  const Variables marked{{"KEY", job::SecretMark("db", false)}};
  Variables variables = marked;
  EXPECT_THAT(FillInSecrets(paths_, &variables).message(), HasSubstr("environment variable KEY"));
  EXPECT_EQ(variables, marked);
  Deliver({{"other", "hunter2"}});
  EXPECT_THAT(FillInSecrets(paths_, &variables).message(),
              HasSubstr("KEY: secret db was not delivered with the job"));
  Deliver({{"db", std::string("hunter2\0", 8)}});
  const Status nul = FillInSecrets(paths_, &variables);
  EXPECT_THAT(nul.message(), HasSubstr("has a NUL byte"));
  EXPECT_THAT(nul.message(), Not(HasSubstr("hunter2")));
  Deliver({{"db", std::string(framework::kMaxVariableBytes, 'x')}});
  EXPECT_THAT(FillInSecrets(paths_, &variables).message(), HasSubstr("expected at most"));
  ASSERT_TRUE(
      WriteFileAtomically(job::JobDir(root_).secrets(), "{\"db\": hunter2", 0600, false).ok());
  const Status damaged = FillInSecrets(paths_, &variables);
  EXPECT_THAT(damaged.message(), HasSubstr("damaged"));
  EXPECT_THAT(damaged.message(), Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace shoal::rendezvous
