#include "rendezvous/coordinator/launcher_commands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/lifecycle/core_driver.h"

namespace shoal::rendezvous {
namespace {

// Whether the role's tasks see no GPU, with these entries of kubernetes.resources.
bool HidesGpus(const std::vector<std::string>& resources, bool no_shared_filesystem) {
  job::Job job = Make(1, 0);
  job.roles[0].command = {"true"};
  job.kubernetes.resources = resources;
  CoreDriver driver(job);
  driver.JoinAll();
  JobLocation location{"job-1", "/job", "", no_shared_filesystem};
  const auto cluster = driver.core.Cluster();
  const auto start = MakeStartMessage(driver.core, cluster, 0, 0, location);
  EXPECT_TRUE(start.ok()) << start.status().message();
  const std::pair<std::string, std::string> hidden("CUDA_VISIBLE_DEVICES", "");
  return start.ok() && std::ranges::find(start->env, hidden) != start->env.end();
}

TEST(MakeStartMessage, GpusAreHiddenFromWhoAsksForNone) {
  EXPECT_TRUE(HidesGpus({}, true));
  EXPECT_TRUE(HidesGpus({"server:nvidia.com/mig-1g.5gb=1"}, true));
  EXPECT_TRUE(HidesGpus({"hugepages-2Mi=64Mi"}, true));
  EXPECT_TRUE(HidesGpus({"nvidia.com/mig-1g.5gb=1"}, false));
}

TEST(MakeStartMessage, PartsOfGpusThatTheClusterGivesAreSeen) {
  EXPECT_FALSE(HidesGpus({"nvidia.com/mig-1g.5gb=1"}, true));
  EXPECT_FALSE(HidesGpus({"worker:nvidia.com/gpu.shared=1"}, true));
}

// A task with every kind of command that runs this program.
StartMessage StartWithPrograms(bool no_shared_filesystem) {
  job::Job job = Make(1, 0);
  job.roles[0].command = {"@shoal", "ps-server"};
  job.roles[0].resources.gpu = 1;
  job.roles[0].ready.command = {"@shoal", "version"};
  job.data.emplace_back();
  CoreDriver driver(job);
  driver.JoinAll();
  JobLocation location{"job-1", "/job", "/coordinators/shoal-task", no_shared_filesystem};
  const auto cluster = driver.core.Cluster();
  auto start = MakeStartMessage(driver.core, cluster, 0, 0, location);
  EXPECT_TRUE(start.ok()) << start.status().message();
  return start.ok() ? *start : StartMessage();
}

std::string ProgramVariable(const StartMessage& start) {
  for (const auto& [name, value] : start.env) {
    if (name == "SHOAL_PROGRAM") return value;
  }
  return "";
}

TEST(MakeStartMessage, ThisProgramIsTheLaunchersWhereTasksHaveAnotherImage) {
  StartMessage start = StartWithPrograms(true);
  for (const std::string& word : start.argv) EXPECT_NE(word, "/coordinators/shoal-task");
  SetOwnProgram("/tasks/shoal", &start);
  const std::vector<std::string> expected = {"/tasks/shoal", "prepare",      "--gpus",   "1",
                                             "--",           "/tasks/shoal", "ps-server"};
  EXPECT_EQ(start.argv, expected);
  EXPECT_EQ(start.ready.command[0], "/tasks/shoal");
  EXPECT_EQ(ProgramVariable(start), "/tasks/shoal");
}

TEST(MakeStartMessage, ThisProgramIsTheCoordinatorsWhereTasksShareItsFiles) {
  const StartMessage start = StartWithPrograms(false);
  EXPECT_EQ(start.argv[0], "/coordinators/shoal-task");
  EXPECT_EQ(start.ready.command[0], "/coordinators/shoal-task");
  EXPECT_EQ(ProgramVariable(start), "/coordinators/shoal-task");
}

}  // namespace
}  // namespace shoal::rendezvous
