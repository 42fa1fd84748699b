// Command lines of dmlc-submit.
#include <gtest/gtest.h>

#include "import/dmlc_submit.h"
#include "import/test_imports.h"

namespace shoal::importer {
namespace {

TEST(DmlcSubmit, FlagsBecomeRoles) {
  const auto imported = ImportDmlcSubmit({{"num-workers", {"1", "4"}},
                                          {"num-servers", {"2"}},
                                          {"cluster", {"yarn"}},
                                          {"server-memory", {"1.5G"}},
                                          {"env", {"A:1,B:2"}},
                                          {"env-worker", {"A:3"}}},
                                         {"./linear.dmlc", "data.conf"});
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  const job::Job& job = imported->job;
  EXPECT_EQ(job.framework, job::Framework::kPsLite);
  EXPECT_EQ(job.name, "linear.dmlc");
  EXPECT_EQ(job.FindRole("worker")->replicas, 4);
  EXPECT_EQ(job.FindRole("scheduler")->replicas, 1);
  EXPECT_EQ(job.FindRole("server")->resources.memory_bytes, int64_t{1536} << 20);
  EXPECT_EQ(job.FindRole("worker")->env.at("A"), "3");
  EXPECT_EQ(job.FindRole("server")->env.at("A"), "1");
  EXPECT_EQ(imported->losses.size(), 2u);
  const auto rabit = ImportDmlcSubmit({{"num-workers", {"3"}}}, {"./a"});
  ASSERT_TRUE(rabit.ok());
  EXPECT_EQ(rabit->job.framework, job::Framework::kRabit);
}

TEST(DmlcSubmit, LinesOfMxnetsLauncherHaveAsManyServersAsWorkers) {
  const auto imported = ImportDmlcSubmit({{"n", {"3"}}, {"launcher", {"ssh"}}, {"H", {"hosts"}}},
                                         {"python", "train.py"});
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(imported->job.framework, job::Framework::kPsLite);
  EXPECT_EQ(imported->job.FindRole("worker")->replicas, 3);
  EXPECT_EQ(imported->job.FindRole("server")->replicas, 3);
  EXPECT_EQ(imported->losses.at(0).field, "--cluster");
  EXPECT_EQ(imported->losses.at(1).field, "-H");
  const auto servers = ImportDmlcSubmit({{"n", {"2"}}, {"s", {"1"}}}, {"a"});
  ASSERT_TRUE(servers.ok());
  EXPECT_EQ(servers->job.FindRole("server")->replicas, 1);
  const auto long_names =
      ImportDmlcSubmit({{"num-workers", {"2"}}, {"launcher", {"local"}}}, {"a"});
  ASSERT_TRUE(long_names.ok());
  EXPECT_EQ(long_names->job.FindRole("server")->replicas, 2);
  EXPECT_EQ(ImportDmlcSubmit({{"s", {"x"}}, {"n", {"1"}}}, {"a"}).status().message(),
            "--num-servers: got 'x', expected an integer from 0 to 100000");
}

TEST(DmlcSubmit, WordsAreJoinedForBashAsThere) {
  const auto command = [](const std::vector<std::string>& words) {
    const auto imported = ImportDmlcSubmit({{"num-workers", {"2"}}, {"num-servers", {"1"}}}, words);
    EXPECT_TRUE(imported.ok());
    return imported->job.command;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(command({"python", "a.py", "--n=1"}), (Words{"python", "a.py", "--n=1"}));
  EXPECT_EQ(command({"python a.py", "$DATA/*.txt", "|", "tee", "x y"}),
            (Words{"bash", "-c", "python a.py $DATA/*.txt | tee x y"}));
  const auto job = ImportDmlcSubmit({{"num-workers", {"2"}}, {"num-servers", {"1"}}}, {"a"})->job;
  EXPECT_EQ(job.FindRole("worker")->env.at("DMLC_TASK_ID"), "{{shoal.index}}");
  EXPECT_EQ(job.FindRole("server")->env.at("DMLC_TASK_ID"), "2");
}

TEST(DmlcSubmit, NumbersOfSeveralServersAreMentioned) {
  for (const char* servers : {"1", "2"}) {
    const auto imported =
        ImportDmlcSubmit({{"num-workers", {"1"}}, {"num-servers", {servers}}}, {"a"});
    ASSERT_TRUE(imported.ok()) << imported.status().message();
    const bool mentioned = std::ranges::any_of(imported->losses, [](const ImportLoss& loss) {
      return loss.sentence.find("DMLC_TASK_ID") != std::string::npos;
    });
    EXPECT_EQ(mentioned, std::string(servers) == "2");
  }
}

TEST(DmlcSubmit, WrongFlagsAreNamed) {
  const auto message = [](const std::string& name, const std::string& value) {
    return ImportDmlcSubmit({{"num-workers", {"1"}}, {name, {value}}}, {"a"}).status().message();
  };
  EXPECT_EQ(message("num-servers", "-1"),
            "--num-servers: got '-1', expected an integer from 0 to 100000");
  EXPECT_EQ(message("worker-memory", "1k"),
            "--worker-memory: got '1k', expected a number that ends with g or m, such as 1g");
  EXPECT_EQ(message("env", "A=1"),
            "--env: got 'A=1', expected NAME:VALUE, several with ',' between them");
  EXPECT_FALSE(ImportDmlcSubmit({{"num-workers", {"1"}}}, {}).ok());
  EXPECT_FALSE(ImportDmlcSubmit({}, {"a"}).ok());
}

}  // namespace
}  // namespace shoal::importer
