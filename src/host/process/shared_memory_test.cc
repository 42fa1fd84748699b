// /dev/shm of a job's own, alone and as programs in process trees see it; and what else namespaces
// of their own change for these.
#include "host/process/shared_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/shm.h>
#include <unistd.h>

#include <chrono>
#include <set>

#include "base/id.h"
#include "host/process/process_tree.h"

namespace shoal::host {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

class SharedMemoryTest : public testing::Test {
 protected:
  JobSharedMemory Open(const std::string& job) {
    auto memory = JobSharedMemory::Open(job, root());
    EXPECT_TRUE(memory.ok()) << memory.status().message();
    return memory.ok() ? std::move(*memory) : JobSharedMemory();
  }
  fs::path root() const { return place_.path(); }
  // As a launcher that was killed leaves it.
  fs::path Leave(const std::string& job) {
    const fs::path path = root() / ("shoal." + std::to_string(::geteuid()) + "." + job);
    EXPECT_TRUE(MakeDirectories(path).ok());
    EXPECT_TRUE(WriteFileAtomically(path / "file", "12345").ok());
    return path;
  }
  TempDir place_ = std::move(*TempDir::Create());
};

TEST_F(SharedMemoryTest, GoesWithTheLastTreeOfTheJob) {
  auto first = Open("a-1");
  fs::path path = first.path();
  {
    const auto second = Open("a-1");
    EXPECT_EQ(second.path(), path);
    ASSERT_TRUE(WriteFileAtomically(path / "file", "12345").ok());
    first = JobSharedMemory();
    EXPECT_TRUE(fs::exists(path / "file"));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(SharedMemoryTest, JobsHaveTheirOwn) { EXPECT_NE(Open("a-1").path(), Open("b-1").path()); }

TEST_F(SharedMemoryTest, WhatAKilledLauncherLeftIsFound) {
  const fs::path left = Leave("dead-1");
  const auto living = Open("living-1");
  const auto found = FindOrphanedSharedMemory(false, root());
  ASSERT_THAT(found, SizeIs(fs::exists(left) ? 1 : 0));  // or the first Open has removed it
  Leave("dead-1");
  EXPECT_THAT(FindOrphanedSharedMemory(true, root()),
              ElementsAre(testing::AllOf(Field(&OrphanedSharedMemory::job, std::string("dead-1")),
                                         Field(&OrphanedSharedMemory::bytes, 5))));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(living.path()));
  EXPECT_THAT(FindOrphanedSharedMemory(true, root()), IsEmpty());
}

TEST_F(SharedMemoryTest, ALinkThatAnotherHasPutThereIsNotFollowed) {
  const fs::path elsewhere = root() / "elsewhere";
  ASSERT_TRUE(MakeDirectories(elsewhere).ok());
  fs::create_symlink(elsewhere, root() / ("shoal." + std::to_string(::geteuid()) + ".a-1"));
  EXPECT_FALSE(JobSharedMemory::Open("a-1", root()).ok());
  EXPECT_FALSE(JobSharedMemory::Open("../a-1", root()).ok());
}

TEST(NeedsHostSharedMemory, WhereItIsNamed) {
  const std::vector<std::string> none;
  EXPECT_FALSE(NeedsHostSharedMemory({"python3", "train.py"}, {"HOME=/home/a"}, "/home/a"));
  EXPECT_TRUE(NeedsHostSharedMemory({"cat", "/dev/shm/corpus"}, none, ""));
  EXPECT_TRUE(NeedsHostSharedMemory({"sh", "-c", "cat </dev/shm/corpus"}, none, ""));
  EXPECT_TRUE(NeedsHostSharedMemory({"x"}, {"SHOAL_OUTPUT=/dev/shm/out"}, ""));
  EXPECT_TRUE(NeedsHostSharedMemory({"x"}, none, "/dev/shm/work"));
  EXPECT_TRUE(NeedsHostSharedMemory({"x"}, {"SHOAL_SHARED_MEMORY=host"}, ""));
}

TEST(FirstProcessNumber, IsAnotherForEachTree) {
  std::set<int> numbers;
  for (int tree = 0; tree < 100; ++tree) numbers.insert(FirstProcessNumber());
  EXPECT_GT(numbers.size(), 95u);
  EXPECT_GE(*numbers.begin(), 300);
}

// ---- In trees ----

class NamespacesTest : public testing::TestWithParam<TreeMode> {
 protected:
  void SetUp() override {
    if (!TreeModeWorks(GetParam()))
      GTEST_SKIP() << TreeModeName(GetParam()) << " is not permitted here";
    isolation_.tree = GetParam();
  }
  std::unique_ptr<ProcessTree> Start(const std::string& script, const UniqueFd& out) {
    const fs::path file = place_.path() / RandomHex(4);  // the command does not name /dev/shm
    EXPECT_TRUE(WriteFileAtomically(file, script + "\n").ok());
    ProcessSpec spec;
    spec.job_id = job_;
    spec.name = "worker-0.0";
    spec.argv = {"sh", file};
    spec.env = {"PATH=/usr/bin:/bin"};
    spec.stdout_fd = spec.stderr_fd = out.get();
    auto tree = ProcessTree::Start(spec, isolation_);
    EXPECT_TRUE(tree.ok()) << tree.status().message();
    return tree.ok() ? std::move(*tree) : nullptr;
  }
  // The one line that it prints.
  std::string Run(const std::string& script) {
    int fds[2];
    EXPECT_EQ(::pipe(fds), 0);
    UniqueFd read(fds[0]);
    UniqueFd write(fds[1]);
    const auto tree = Start(script, write);
    write.Reset();
    std::string line;
    char c = 0;
    while (::read(read.get(), &c, 1) == 1 && c != '\n') line += c;
    const bool ended = tree != nullptr && tree->Wait(std::chrono::seconds(20)).has_value();
    EXPECT_TRUE(ended);
    return line;
  }
  TempDir place_ = std::move(*TempDir::Create());
  Isolation isolation_;
  const std::string job_ = "shm-test-" + RandomHex(4);
};

TEST_P(NamespacesTest, WhatAProgramLeavesInSharedMemoryGoesWithIt) {
  const std::string name = "left-by-" + job_;
  EXPECT_EQ(Run("echo x > /dev/shm/" + name + " && cat /dev/shm/" + name), "x");
  EXPECT_FALSE(fs::exists(fs::path("/dev/shm") / name));
  EXPECT_EQ(Run("ls /dev/shm | wc -l"), "0");
  for (const auto& entry : fs::directory_iterator("/dev/shm"))
    EXPECT_FALSE(entry.path().string().ends_with(job_)) << entry.path();
}

TEST_P(NamespacesTest, TasksOfAJobShareIt) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const UniqueFd read(fds[0]);
  const UniqueFd write(fds[1]);
  const auto tree = Start("echo shared > /dev/shm/name; echo; exec sleep 600", write);
  char c = 0;
  ASSERT_EQ(::read(read.get(), &c, 1), 1);
  EXPECT_EQ(Run("cat /dev/shm/name"), "shared");
  tree->KillAll();
}

TEST_P(NamespacesTest, ProgramsHaveDifferentNumbers) {
  const std::string first = Run("echo $$");
  EXPECT_NE(first, Run("echo $$"));
  EXPECT_NE(first, "2");
}

TEST_P(NamespacesTest, SystemVMemoryGoesWithTheTreeThatMadeIt) {
  if (::access("/usr/bin/ipcmk", X_OK) != 0) GTEST_SKIP() << "there is no ipcmk";
  const std::string made = Run("ipcmk -M 65536 | sed 's/.*: //'");
  ASSERT_FALSE(made.empty());
  shmid_ds segment{};
  EXPECT_EQ(::shmctl(std::stoi(made), IPC_STAT, &segment), -1) << "segment " << made;
}

INSTANTIATE_TEST_SUITE_P(Modes, NamespacesTest,
                         testing::Values(TreeMode::kPidNamespace, TreeMode::kUserNamespace),
                         [](const auto& mode) {
                           std::string name(TreeModeName(mode.param));
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace shoal::host
