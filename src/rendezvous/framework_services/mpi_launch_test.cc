#include "rendezvous/framework_services/mpi_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "base/file.h"

namespace shoal::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kCluster =
    R"({"generation":1,"roles":{"launcher":["127.0.0.1:0"],"worker":["127.0.0.1:4001",":0","10.0.0.2:4003"]},)"
    R"("ports":{"worker":{"ssh":[4001,0,4003],"mpi":[4002,0,4004]}}})";

TEST(MpiLaunch, WritesWhatEachMpirunReads) {
  auto directory = TempDir::Create();
  ASSERT_TRUE(directory.ok());
  const auto set =
      WriteMpiLaunchFiles({directory->path(), "/opt/it's shoal/shoal", "worker-0:2 worker-2:16"});
  ASSERT_TRUE(set.ok()) << set.status().message();
  const std::map<std::string, std::string> variables(set->begin(), set->end());
  EXPECT_EQ(*ReadFile(variables.at("OMPI_MCA_orte_default_hostfile"), 1000),
            "worker-0 slots=2\nworker-2 slots=16\n");
  EXPECT_EQ(variables.at("PRTE_MCA_prte_default_hostfile"),
            variables.at("OMPI_MCA_orte_default_hostfile"));
  EXPECT_EQ(*ReadFile(variables.at("HYDRA_HOST_FILE"), 1000), "worker-0:2\nworker-2:16\n");
  EXPECT_EQ(variables.at("I_MPI_HYDRA_HOST_FILE"), variables.at("HYDRA_HOST_FILE"));
  const std::string rsh = variables.at("OMPI_MCA_plm_rsh_agent");
  EXPECT_EQ(*ReadFile(rsh, 1000),
            "#!/bin/sh\nexec '/opt/it'\\''s shoal/shoal' mpi-agent -- \"$@\"\n");
  struct stat file {};
  ASSERT_EQ(::stat(rsh.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0700u);
  for (const char* name :
       {"PRTE_MCA_plm_ssh_agent", "HYDRA_LAUNCHER_EXEC", "I_MPI_HYDRA_BOOTSTRAP_EXEC"}) {
    EXPECT_EQ(variables.at(name), rsh);
  }
}

TEST(MpiLaunch, WritesWhatScriptsRead) {
  auto directory = TempDir::Create();
  ASSERT_TRUE(directory.ok());
  const auto set = WriteMpiLaunchFiles({directory->path(), "/opt/shoal", "worker-0:2"});
  ASSERT_TRUE(set.ok()) << set.status().message();
  const std::map<std::string, std::string> variables(set->begin(), set->end());
  EXPECT_EQ(*ReadFile(variables.at("SHOAL_MPI_HOSTFILE"), 1000), "worker-0 slots=2\n");
  EXPECT_EQ(*ReadFile(variables.at("SHOAL_MPI_HYDRA_HOSTFILE"), 1000), "worker-0:2\n");
  const std::filesystem::path bin = variables.at("SHOAL_MPI_BIN");
  EXPECT_EQ(*ReadFile(bin / "ssh", 1000),
            "#!/bin/sh\nexec '/opt/shoal' mpi-agent --ssh -- \"$@\"\n");
  const std::string path = ":/nowhere:" + bin.string() + ":" + bin.string() + "/../bin";
  EXPECT_EQ(FindOtherProgram("ssh", path, bin), "");
  EXPECT_EQ(FindOtherProgram("sh", path + ":/bin:/usr/bin", bin), "/bin/sh");
  EXPECT_EQ(FindOtherProgram("ssh", path, "/other"), bin / "ssh");
}

TEST(MpiLaunch, ReadsOptionsAsSshDoes) {
  const std::vector<std::vector<std::string>> lines = {
      {"-p", "2222", "-o", "StrictHostKeyChecking=no", "worker-0", "a", "b"},
      {"-qTp2222", "-oConnectTimeout=5", "worker-0", "a", "b"},
      {"worker-0", "-p", "22", "-n", "a", "b"},
      {"-l", "root", "-ni", "/key", "--", "root@worker-0", "a", "b"},
  };
  for (const auto& words : lines) {
    const auto found = FindMpiHost(words, kCluster);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->name, "worker-0");
    EXPECT_EQ(found->command, "a b");
  }
  EXPECT_EQ(FindMpiHost({"-p", "22", "worker-0"}, kCluster).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(FindMpiHost({"worker-0", "-p"}, kCluster).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(FindMpiHost({"-o"}, kCluster).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(FindMpiHost({"-V"}, kCluster).status().code(), Code::kInvalidArgument);
}

TEST(MpiLaunch, RefusesHostsThatAreNone) {
  for (const char* hosts : {"", "worker-0", "worker-0:", "worker-0:0", "worker-0:-1",
                            "worker-0:1234567", ":2", "a b:1", "-x:1", "w;rm:1", "worker-0:2 "}) {
    EXPECT_EQ(ReadSlots(hosts).ok(), std::string(hosts) == "worker-0:2 ") << hosts;
  }
}

TEST(MpiLaunch, FindsTheTaskThatRshIsAskedFor) {
  const auto hydra =
      FindMpiHost({"-x", "worker-2", "\"/usr/bin/hydra_pmi_proxy\"", "--a", "b c"}, kCluster);
  ASSERT_TRUE(hydra.ok()) << hydra.status().message();
  EXPECT_EQ(hydra->name, "worker-2");
  EXPECT_EQ(hydra->host, "10.0.0.2");
  EXPECT_EQ(hydra->port, 4004);
  EXPECT_EQ(hydra->command, "\"/usr/bin/hydra_pmi_proxy\" --a b c");
  const auto open = FindMpiHost({"me@worker-0", " orted --x"}, kCluster);
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open->port, 4002);
  EXPECT_EQ(open->command, " orted --x");
}

TEST(MpiLaunch, SaysWhichHostsThereAre) {
  for (const char* name : {"node7", "worker-1", "launcher-0", "worker-3", "worker"}) {
    const auto found = FindMpiHost({name, "orted"}, kCluster);
    EXPECT_EQ(found.status().code(), Code::kNotFound) << name;
    EXPECT_THAT(found.status().message(), HasSubstr("expected one of worker-0, worker-2;"));
  }
  EXPECT_EQ(FindMpiHost({"worker-0"}, kCluster).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(FindMpiHost({"-x"}, kCluster).status().code(), Code::kInvalidArgument);
  EXPECT_FALSE(FindMpiHost({"worker-0", "a"}, "{").ok());
}

TEST(MpiLaunch, DaemonsHaveTheirTasksEnvironmentButNotItsOwnProcess) {
  const char* const own[] = {
      "A=1",  "SHOAL_LOCAL_RANK=0", "SHOAL_SCRATCH=/s", "SHOAL_REPORT_FD=3", "SHOAL_LOCAL_SIZE=2",
      nullptr};
  EXPECT_THAT(MpiDaemonEnvironment(own),
              ElementsAre("A=1", "SHOAL_SCRATCH=/s", "OMPI_MCA_btl_vader_backing_directory=/s",
                          "OMPI_MCA_btl_sm_backing_directory=/s"));
  const char* const said[] = {"OMPI_MCA_btl_vader_backing_directory=/fast",
                              "OMPI_MCA_btl_sm_backing_directory=/fast", "SHOAL_SCRATCH=/s",
                              nullptr};
  EXPECT_EQ(MpiDaemonEnvironment(said).size(), 3u);
}

}  // namespace
}  // namespace shoal::rendezvous
