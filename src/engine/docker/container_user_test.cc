// As whom a job's containers run, and what that user finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/docker/container_spec.h"
#include "engine/docker/host_files.h"

namespace shoal::engine::docker {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

SpecOptions Options() {
  SpecOptions options{"/bin/shoal", "/bin/shoal-task", "1001:100", {}};
  options.user_name = "ann";
  options.groups = {"27", "44"};
  return options;
}

DesiredJob Job(const std::string& user) {
  DesiredJob job;
  job.job_id = "job-1";
  job.job_dir = "/state/job-1";
  job.image = "acme/train:7";
  job.container.user = user;
  DesiredTask task;
  task.role = "worker";
  task.argv = {"/bin/shoal", "task"};
  job.tasks = {task};
  return job;
}

json::object Container(const DesiredJob& job) {
  return MakeContainer(Options(), {&job, &job.tasks[0], 0, 0, {}});
}

std::vector<std::string> Texts(const json::value& list) {
  std::vector<std::string> texts;
  for (const json::value& one : list.as_array()) texts.emplace_back(one.as_string());
  return texts;
}

TEST(ContainerUser, WhoeverAsksKeepsNameAndGroups) {
  for (const char* user : {"", "1001:100"}) {
    const json::object body = Container(Job(user));
    EXPECT_EQ(body.at("User").as_string(), "1001:100");
    EXPECT_THAT(Texts(body.at("HostConfig").at("GroupAdd")), ElementsAre("27", "44"));
    EXPECT_THAT(Texts(body.at("Env")), Contains("USER=ann"));
    EXPECT_THAT(Texts(body.at("Env")), Contains("LOGNAME=ann"));
  }
}

TEST(ContainerUser, AnotherHasNeither) {
  const json::object body = Container(Job("7:8"));
  EXPECT_EQ(body.at("User").as_string(), "7:8");
  EXPECT_FALSE(body.at("HostConfig").as_object().contains("GroupAdd"));
  EXPECT_THAT(Texts(body.at("Env")), Not(Contains("USER=ann")));
}

TEST(ContainerUser, TheJobsVariablesCount) {
  DesiredJob job = Job("");
  job.tasks[0].env = {{"USER", "other"}};
  EXPECT_THAT(Texts(Container(job).at("Env")), Contains("USER=other"));
}

TEST(ContainerUser, IsRead) {
  EXPECT_EQ(ParseUser("7:8")->uid, 7u);
  EXPECT_EQ(ParseUser("7:8")->gid, 8u);
  EXPECT_EQ(ParseUser("7")->gid, 7u);
  for (const char* text : {"", "nobody", "7:", ":8", "7:x", "-1"})
    EXPECT_FALSE(ParseUser(text)) << text;
}

uid_t OwnerOf(const std::filesystem::path& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_uid;
}

TEST(HostFiles, ADirectoryThatAnOutputNeedsIsMade) {
  const TempDir dir = std::move(*TempDir::Create());
  DesiredJob job = Job("");
  job.job_dir = dir.path();
  const std::string results = dir.path() / "results";
  job.container.mounts = {{results, results, false, true}};
  ASSERT_TRUE(PrepareHostFiles(job).ok());
  EXPECT_EQ(OwnerOf(results), ::geteuid());
  EXPECT_TRUE(PrepareHostFiles(job).ok());  // it is there
  ASSERT_TRUE(WriteFileAtomically(dir.path() / "file", "").ok());
  job.container.mounts[0].source = dir.path() / "file" / "results";
  EXPECT_THAT(PrepareHostFiles(job).message(),
              HasSubstr("is not on this machine and cannot be made"));
}

// The directory itself remains root's, since this process works in it with root's rights.
TEST(HostFiles, AnotherUserGetsTheContentsOfTheJobsDirectoryFromRoot) {
  const TempDir dir = std::move(*TempDir::Create());
  ASSERT_TRUE(WriteFileAtomically(dir.path() / "token", "t", 0600).ok());
  DesiredJob job = Job("1234567:8");
  job.job_dir = dir.path();
  const std::string results = dir.path().string() + "/results";
  job.container.mounts = {{results, results, false, true}};
  const Status prepared = PrepareHostFiles(job);
  if (::geteuid() != 0) {
    EXPECT_THAT(prepared.message(), HasSubstr("container.user: got 1234567:8"));
    return;
  }
  ASSERT_TRUE(prepared.ok()) << prepared.message();
  for (const char* name : {"token", "results"})
    EXPECT_EQ(OwnerOf(dir.path() / name), 1234567u) << name;
  struct stat info {};
  ASSERT_EQ(::stat(job.job_dir.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0u);
  EXPECT_EQ(info.st_gid, 8u);
  EXPECT_EQ(info.st_mode & 0777, 0770u);
}

}  // namespace
}  // namespace shoal::engine::docker
