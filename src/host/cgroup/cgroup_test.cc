// Control groups: where they are found (in trees of files made here), and real ones where the
// machine has them.
#include "host/cgroup/cgroup.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <thread>

#include "base/id.h"
#include "host/process/isolation.h"
#include "host/process/process_usage.h"

namespace shoal::host {
namespace {

namespace fs = std::filesystem;

class LayoutTest : public testing::Test {
 protected:
  void SetUp() override {
    auto dir = TempDir::Create();
    ASSERT_TRUE(dir.ok());
    dir_.emplace(std::move(*dir));
  }
  void Write(const std::string& path, const std::string& text) {
    const fs::path full = dir_->path() / path;
    ASSERT_TRUE(MakeDirectories(full.parent_path()).ok());
    ASSERT_TRUE(WriteFileAtomically(full, text, 0644, false).ok());
  }
  std::string Rel(const fs::path& path) {
    return path.empty() ? "" : "/" + path.lexically_relative(dir_->path()).string();
  }
  std::optional<TempDir> dir_;
};

constexpr const char* kV2Mount =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

// `shoal` exists already in these, because a plain directory has no entry file of its own.
TEST_F(LayoutTest, Version2TakesTheNearestGroupThatHandsControllersDown) {
  Write("proc/self/mountinfo", kV2Mount);
  Write("proc/self/cgroup", "0::/user.slice/user-1.slice/session-1.scope\n");
  Write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
  const std::string user = "sys/fs/cgroup/user.slice/user-1.slice";
  Write(user + "/session-1.scope/cgroup.subtree_control", "");  // has processes: hands none down
  Write(user + "/cgroup.subtree_control", "cpu memory pids\n");
  Write(user + "/shoal/cgroup.procs", "");
  const CgroupLayout layout = FindCgroups(dir_->path());
  EXPECT_EQ(layout.version, CgroupVersion::kV2);
  EXPECT_EQ(Rel(layout.memory), "/" + user);
  EXPECT_EQ(Rel(layout.unified), "/" + user);
  EXPECT_EQ(layout.Bases().size(), 1u);
}

TEST_F(LayoutTest, Version1WithAUnifiedGroupBesideIt) {
  Write("proc/self/mountinfo",
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  Write("proc/self/cgroup", "4:memory:/docker/x\n2:cpu,cpuacct:/\n0::/\n");
  Write("sys/fs/cgroup/unified/cgroup.controllers", "hugetlb\n");
  Write("sys/fs/cgroup/unified/shoal/cgroup.procs", "");
  Write("sys/fs/cgroup/memory/docker/x/shoal/tasks", "");
  Write("sys/fs/cgroup/cpu,cpuacct/shoal/tasks", "");
  const CgroupLayout layout = FindCgroups(dir_->path());
  EXPECT_EQ(layout.version, CgroupVersion::kV1);
  EXPECT_EQ(Rel(layout.memory), "/sys/fs/cgroup/memory/docker/x");
  EXPECT_EQ(Rel(layout.cpu), "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(Rel(layout.unified), "/sys/fs/cgroup/unified");
  EXPECT_TRUE(layout.pids.empty());
}

TEST_F(LayoutTest, AMountThatShowsOnlyTheContainersPart) {
  Write("proc/self/mountinfo",
        "35 31 0:32 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  Write("proc/self/cgroup", "4:memory:/docker/x/inner\n");
  Write("sys/fs/cgroup/memory/inner/shoal/tasks", "");
  EXPECT_EQ(Rel(FindCgroups(dir_->path()).memory), "/sys/fs/cgroup/memory/inner");
  EXPECT_EQ(Rel(OwnCgroups(dir_->path()).memory), "/sys/fs/cgroup/memory/inner");
}

TEST_F(LayoutTest, NothingIsFoundInNonsense) {
  EXPECT_FALSE(FindCgroups(dir_->path()).any());
  Write("proc/self/mountinfo", "garbage\n - \n1 2 3 - cgroup2\n1 2 3 4 5 - cgroup2 x\n");
  Write("proc/self/cgroup", "garbage\n:\n::\n4:memory\n");
  EXPECT_FALSE(FindCgroups(dir_->path()).any());
  for (const IsolationFact& fact : Describe(Isolation{})) {
    EXPECT_FALSE(fact.best) << fact.name;
    EXPECT_FALSE(fact.meaning.empty());
    EXPECT_FALSE(fact.remedy.empty());
  }
}

// Version 2 limits, written into a tree of files: what the kernel would be told.
TEST_F(LayoutTest, Version2LimitsAreWritten) {
  const fs::path base = dir_->path() / "base";
  const fs::path group = base / "shoal/job/task";
  CgroupLayout layout;
  layout.version = CgroupVersion::kV2;
  layout.memory = layout.cpu = layout.pids = layout.unified = base;
  Write("base/keep", "");
  // The group cannot be made afresh with files in it, so the files come by the way of a bind: the
  // directory is made by Create, found empty, and said to be without a controller.
  auto made = Cgroup::Create(layout, "job", "task", {2, 1 << 20, 10});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(fs::exists(group));
  EXPECT_FALSE(made->memory_enforced());
  EXPECT_EQ(made->OomKills(), 0);
  made = Cgroup();
  EXPECT_FALSE(fs::exists(base / "shoal"));
}

class RealGroupTest : public testing::Test {
 protected:
  void SetUp() override {
    layout_ = FindCgroups();
    if (!layout_.any()) GTEST_SKIP() << "no control groups can be made here";
  }
  // A process that sleeps inside the group.
  pid_t SleepIn(const Cgroup& group) {
    auto entries = group.OpenEntries();
    EXPECT_TRUE(entries.ok());
    UniqueFd unified = group.OpenUnified();
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    for (const UniqueFd& entry : *entries) {
      if (::write(entry.get(), "0", 1) != 1) ::_exit(1);
    }
    if (unified.valid()) {
      UniqueFd procs(::openat(unified.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC));
      if (::write(procs.get(), "0", 1) != 1) ::_exit(1);
    }
    for (;;) ::pause();
  }
  void AwaitInside(pid_t pid) {
    for (int i = 0; i < 10'000; ++i) {
      for (int inside : PidsInCgroupsOf(layout_.Bases(), job_)) {
        if (inside == pid) return;
      }
      ::usleep(1000);
    }
    FAIL() << "the process did not enter the group";
  }
  CgroupLayout layout_;
  std::string job_ = "cgroup-test-" + RandomHex(4);
};

TEST_F(RealGroupTest, KillEndsEverybodyInside) {
  auto group = Cgroup::Create(layout_, job_, "a", {0, 64 << 20, 0});
  ASSERT_TRUE(group.ok()) << group.status().message();
  const pid_t pid = SleepIn(*group);
  AwaitInside(pid);
  EXPECT_TRUE(group->Kill().ok());
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status));
}

// As in a container of fewer processors than the job's file asks for.
TEST_F(RealGroupTest, MoreProcessorsThanAGroupAboveHasAreNoError) {
  CgroupLayout layout;
  layout.version = CgroupVersion::kV1;
  const fs::path above = "/sys/fs/cgroup/cpu/" + job_;
  if (!fs::exists("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") || ::mkdir(above.c_str(), 0755) != 0)
    GTEST_SKIP() << "no processor groups of version 1 can be made here";
  layout.cpu = above;
  UniqueFd quota(::open((above / "cpu.cfs_quota_us").c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(::write(quota.get(), "50000", 5), 5);
  {
    auto group = Cgroup::Create(layout, job_, "a", {8, 0, 0});
    EXPECT_TRUE(group.ok()) << group.status().message();
  }
  EXPECT_EQ(::rmdir(above.c_str()), 0);
}

TEST_F(RealGroupTest, FreezerKillsWhereThereIsNoCgroupKill) {
  CgroupLayout layout;
  layout.version = CgroupVersion::kV1;
  layout.freezer = "/sys/fs/cgroup/freezer";
  if (!fs::exists(layout.freezer / "tasks")) GTEST_SKIP() << "no freezer of version 1 here";
  layout_ = layout;
  auto group = Cgroup::Create(layout, job_, "a", {});
  ASSERT_TRUE(group.ok()) << group.status().message();
  const pid_t pid = SleepIn(*group);
  AwaitInside(pid);
  EXPECT_TRUE(group->Kill().ok());
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_F(RealGroupTest, LeftoversAreFoundByJobAndRemovedWithWhatIsInThem) {
  pid_t pid = 0;
  {
    auto group = Cgroup::Create(layout_, job_, "a", {1, 64 << 20, 100});
    ASSERT_TRUE(group.ok()) << group.status().message();
    pid = SleepIn(*group);
    AwaitInside(pid);
    auto jobs = JobsWithCgroups(layout_.Bases());
    EXPECT_NE(std::find(jobs.begin(), jobs.end(), job_), jobs.end());
    EXPECT_TRUE(RemoveCgroupsOf(layout_.Bases(), job_).ok());
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status));
  auto jobs = JobsWithCgroups(layout_.Bases());
  EXPECT_EQ(std::find(jobs.begin(), jobs.end(), job_), jobs.end());
  EXPECT_TRUE(RemoveCgroupsOf(layout_.Bases(), job_).ok());
}

TEST_F(RealGroupTest, ASecondOfTheSameNameReplacesTheFirst) {
  auto first = Cgroup::Create(layout_, job_, "a", {0, 64 << 20, 0});
  ASSERT_TRUE(first.ok());
  const pid_t pid = SleepIn(*first);
  AwaitInside(pid);
  auto second = Cgroup::Create(layout_, job_, "a", {0, 64 << 20, 0});
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_TRUE(second->Pids().empty());
  ::waitpid(pid, nullptr, 0);
}

TEST_F(RealGroupTest, ManyWhoLookAtOnceFindTheSamePlace) {
  std::vector<std::thread> threads;
  std::atomic<int> same{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) same += FindCgroups().Bases() == layout_.Bases();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, 200);
}

TEST_F(RealGroupTest, HostileNamesStayInside) {
  auto group = Cgroup::Create(layout_, "../../" + job_, "../x/y", {0, 64 << 20, 0});
  ASSERT_TRUE(group.ok()) << group.status().message();
  auto jobs = JobsWithCgroups(layout_.Bases());
  EXPECT_NE(std::find(jobs.begin(), jobs.end(), "_.._.._" + job_), jobs.end());
}

TEST(Machine, FactsAreSane) {
  const MachineFacts facts = ReadMachineFacts();
  EXPECT_GE(facts.cores, 0.01);
  EXPECT_LE(facts.cores, static_cast<double>(::sysconf(_SC_NPROCESSORS_CONF)));
  EXPECT_GT(facts.memory_bytes, 64 << 20);
  EXPECT_LE(facts.available_bytes, facts.memory_bytes);
  EXPECT_FALSE(facts.processor.empty());
}

TEST(Usage, OfOurselves) {
  auto stat = ReadProcessStat(::getpid());
  ASSERT_TRUE(stat.ok());
  EXPECT_EQ(stat->parent, ::getppid());
  EXPECT_TRUE(IsAlive(::getpid(), stat->start_ticks));
  EXPECT_FALSE(IsAlive(::getpid(), stat->start_ticks + 1));
  std::string block(32 << 20, 'x');
  const Usage usage = UsageOf({::getpid(), 999'999'999});
  EXPECT_EQ(usage.processes, 1);
  EXPECT_GE(usage.private_bytes, static_cast<int64_t>(block.size()));
  EXPECT_FALSE(KillProcess(::getpid(), stat->start_ticks + 1));
}

TEST(Usage, VariablesAndDescendants) {
  const std::string value = RandomHex(8);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string entry = "USAGE_TEST=" + value;
    const char* argv[] = {"sleep", "1000", nullptr};
    const char* envp[] = {"OTHER=1", entry.c_str(), nullptr};
    ::execve("/bin/sleep", const_cast<char**>(argv), const_cast<char**>(envp));
    ::_exit(127);
  }
  std::vector<pid_t> found;
  for (int i = 0; i < 10'000 && found.empty(); ++i) {
    found = ProcessesWithVariable("USAGE_TEST", value);
    if (found.empty()) ::usleep(1000);
  }
  EXPECT_EQ(found, std::vector<pid_t>{child});
  EXPECT_EQ(Descendants(::getpid()), std::vector<pid_t>{child});
  EXPECT_EQ(ReadProcessVariable(child, "USAGE_TES").status().code(), Code::kNotFound);
  EXPECT_TRUE(KillProcess(child, 0));
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(Descendants(::getpid()).empty());
}

// A child belongs to the thread that started it, and its own child comes after it.
TEST(Usage, DescendantsOfAnyThread) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = 0;
  std::latch seen(1);
  std::latch forked(1);
  std::thread thread([&] {
    child = ::fork();
    if (child == 0) {
      const pid_t grandchild = ::fork();
      if (grandchild == 0) {
        ::pause();
        ::_exit(0);
      }
      if (::write(ready[1], &grandchild, sizeof grandchild) < 0) ::_exit(1);
      ::pause();
      ::_exit(0);
    }
    forked.count_down();
    seen.wait();
  });
  pid_t grandchild = 0;
  EXPECT_EQ(::read(ready[0], &grandchild, sizeof grandchild), ssize_t{sizeof grandchild});
  forked.wait();
  EXPECT_EQ(Descendants(::getpid()), (std::vector<pid_t>{child, grandchild}));
  EXPECT_TRUE(KillProcess(grandchild, 0));
  EXPECT_TRUE(KillProcess(child, 0));
  seen.count_down();
  thread.join();
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace shoal::host
