// Process trees in every mode that this machine permits: ends, signals, limits, and that nothing
// survives.
#include "host/process/process_tree.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "base/id.h"

namespace shoal::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kLong = seconds(20);

bool Eventually(const std::function<bool()>& condition, milliseconds limit = kLong) {
  const auto deadline = SteadyClock::now() + limit;
  while (!condition()) {
    if (SteadyClock::now() > deadline) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe MakePipe() {
  int fds[2];
  EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::string ReadToEnd(int fd) {
  std::string text;
  char block[4096];
  for (ssize_t size; (size = ::read(fd, block, sizeof block)) > 0;)
    text.append(block, static_cast<size_t>(size));
  return text;
}

std::string ReadLine(int fd) {
  std::string line;
  char c = 0;
  while (::read(fd, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

struct Mode {
  TreeMode tree;
  bool groups;
};

std::string ModeName(const testing::TestParamInfo<Mode>& info) {
  std::string name(TreeModeName(info.param.tree));
  std::erase(name, '-');
  return name + (info.param.groups ? "_groups" : "_plain");
}

class ProcessTreeTest : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    if (!TreeModeWorks(GetParam().tree))
      GTEST_SKIP() << TreeModeName(GetParam().tree) << " is not permitted here";
    isolation_.tree = GetParam().tree;
    if (!GetParam().groups) return;
    isolation_.cgroups = FindCgroups();
    if (!isolation_.cgroups.any()) GTEST_SKIP() << "no control groups can be made here";
  }

  ProcessSpec Shell(const std::string& script) const {
    ProcessSpec spec;
    spec.job_id = job_;
    spec.name = "worker-0.0";
    spec.argv = {"sh", "-c", script};
    spec.env = {"PATH=/usr/bin:/bin", "HOST_TEST_MARK=" + job_};
    return spec;
  }
  // Runs to the end with its output.
  std::string Output(ProcessSpec spec, ProcessExit* end) const {
    Pipe pipe = MakePipe();
    spec.stdout_fd = spec.stderr_fd = pipe.write.get();
    auto tree = ProcessTree::Start(spec, isolation_);
    pipe.write.Reset();
    if (!tree.ok()) return tree.status().message();
    std::string text = ReadToEnd(pipe.read.get());
    auto ended = (*tree)->Wait(kLong);
    EXPECT_TRUE(ended.has_value());
    if (ended) *end = *ended;
    return text;
  }
  bool NothingLeft() const { return ProcessesWithVariable("HOST_TEST_MARK", job_).empty(); }

  Isolation isolation_;
  std::string job_ = "host-test-" + RandomHex(4);
};

TEST_P(ProcessTreeTest, ReportsExitCodes) {
  for (int code : {0, 1, 77, 255}) {
    ProcessExit end;
    EXPECT_EQ(Output(Shell("echo out; echo err >&2; exit " + std::to_string(code)), &end),
              "out\nerr\n");
    EXPECT_EQ(end.exit_code, code);
    EXPECT_EQ(end.signal, 0);
    EXPECT_FALSE(end.out_of_memory);
  }
}

TEST_P(ProcessTreeTest, ReportsSignals) {
  ProcessExit end;
  Output(Shell("kill -9 $$"), &end);
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_FALSE(end.out_of_memory);
  Output(Shell("kill -15 $$"), &end);
  EXPECT_EQ(end.signal, SIGTERM);
}

TEST_P(ProcessTreeTest, EnvironmentDirectoryAndDescriptorsAreExactlyWhatWasAsked) {
  Pipe report = MakePipe();
  ProcessSpec spec = Shell("env | sort; pwd; ls /proc/self/fd | tr '\\n' ' '; echo report >&9");
  spec.env = {"PATH=/usr/bin:/bin", "A=b c", "HOST_TEST_MARK=" + job_};
  spec.work_dir = "/usr";
  spec.inherited = {{report.write.get(), 9}};
  ProcessExit end;
  const std::string text = Output(spec, &end);
  report.write.Reset();
  // ls itself has 3 open.
  EXPECT_EQ(text,
            "A=b c\nHOST_TEST_MARK=" + job_ + "\nPATH=/usr/bin:/bin\nPWD=/usr\n/usr\n0 1 2 3 9 ");
  EXPECT_EQ(ReadToEnd(report.read.get()), "report\n");
}

TEST_P(ProcessTreeTest, DescriptorsMayCrossOver) {
  Pipe a = MakePipe();
  Pipe b = MakePipe();
  // Each shall appear under the number that the other has here.
  ProcessSpec spec = Shell("echo a >&" + std::to_string(b.write.get()) + "; echo b >&" +
                           std::to_string(a.write.get()));
  spec.inherited = {{a.write.get(), b.write.get()}, {b.write.get(), a.write.get()}};
  ProcessExit end;
  Output(spec, &end);
  a.write.Reset();
  b.write.Reset();
  EXPECT_EQ(ReadToEnd(a.read.get()), "a\n");
  EXPECT_EQ(ReadToEnd(b.read.get()), "b\n");
}

TEST_P(ProcessTreeTest, ProcTellsTheProgramItsOwnPid) {
  ProcessExit end;
  EXPECT_EQ(Output(Shell("read pid rest < /proc/self/stat; read self name rest < /proc/$$/stat; "
                         "test $self = $$ && echo \"$name\""),
                   &end),
            "(sh)\n");
}

// UCX's shared memory wants it so, by which MPICH's ranks meet.
TEST_P(ProcessTreeTest, TreesInWhichRanksOfMpiRunCountFromTheSameNumber) {
  if (GetParam().tree == TreeMode::kGuard) GTEST_SKIP() << "numbers are the machine's";
  ProcessSpec spec = Shell("echo $$");
  spec.env.push_back("SHOAL_MPI_HOST=0.0.0.0");
  ProcessExit end;
  const std::string first = Output(spec, &end);
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(Output(spec, &end), first);
}

TEST_P(ProcessTreeTest, StartsCleanlyWhateverTheLauncherDoesWithSignals) {
  sigset_t mask;
  sigset_t before;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &mask, &before);
  auto old_child = ::signal(SIGCHLD, SIG_IGN);
  auto old_pipe = ::signal(SIGPIPE, SIG_IGN);
  ProcessExit end;
  const std::string text = Output(Shell("grep -E 'Sig(Blk|Ign)' /proc/self/status; exit 3"), &end);
  ::signal(SIGCHLD, old_child);
  ::signal(SIGPIPE, old_pipe);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  EXPECT_EQ(end.exit_code, 3);
}

TEST_P(ProcessTreeTest, SignalReachesTheProgramsGroup) {
  Pipe pipe = MakePipe();
  ProcessSpec spec =
      Shell("trap 'wait; echo got; exit 5' TERM; sh -c 'echo ready; exec sleep 1000' & wait");
  spec.stdout_fd = pipe.write.get();
  auto tree = ProcessTree::Start(spec, isolation_);
  ASSERT_TRUE(tree.ok()) << tree.status().message();
  pipe.write.Reset();
  ASSERT_EQ(ReadLine(pipe.read.get()), "ready");
  EXPECT_FALSE((*tree)->TryWait().has_value());
  // The shell waits for its sleep, which the group's signal ends too.
  ASSERT_TRUE((*tree)->Signal(SIGTERM).ok());
  auto end = (*tree)->Wait(kLong);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 5);
  EXPECT_EQ(ReadToEnd(pipe.read.get()), "got\n");
  EXPECT_EQ((*tree)->Signal(SIGTERM).code(), Code::kFailedPrecondition);
}

// A child in another session, an orphan by double fork, both with every signal ignored.
constexpr const char* kScatter =
    "trap '' TERM HUP INT; export mine=$$; setsid sleep 1000.$mine & "
    "(setsid sh -c 'trap \"\" TERM; sleep 1000.$mine & sleep 1000.$mine' & ) ; "
    "setsid setsid sleep 1000.$mine & "
    "while [ $(grep -laP \"^sleep\\x001000.$mine\" /proc/[0-9]*/cmdline 2>/dev/null | wc -l) "
    "-lt 4 ]; do :; done; echo ready; ";

ProcessSpec Three(ProcessSpec spec) {
  std::vector<std::string> env = spec.env;
  for (const char* rank : {"1", "2"}) {
    AdditionalProcess more;
    more.env = env;
    more.env.push_back(std::string("RANK=") + rank);
    spec.additional.push_back(std::move(more));
  }
  spec.env.push_back("RANK=0");
  return spec;
}

// The launcher asks init over its control socket: a signal to init itself is somebody else's.
TEST_P(ProcessTreeTest, TellsThatOthersSignalledTheTree) {
  for (const bool others : {false, true}) {
    Pipe pipe = MakePipe();
    ProcessSpec spec = Shell("trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done");
    spec.stdout_fd = pipe.write.get();
    auto tree = ProcessTree::Start(spec, isolation_);
    ASSERT_TRUE(tree.ok()) << tree.status().message();
    EXPECT_EQ(ReadLine(pipe.read.get()), "up");
    const auto program = ReadProcessStat((*tree)->pid());
    ASSERT_TRUE(program.ok());
    if (others) {
      EXPECT_EQ(::kill(program->parent, SIGTERM), 0);
      EXPECT_EQ(::kill((*tree)->pid(), SIGTERM), 0);
    } else {
      EXPECT_TRUE((*tree)->Signal(SIGTERM).ok());
    }
    const auto end = (*tree)->Wait(kLong);
    ASSERT_TRUE(end);
    EXPECT_TRUE(end->ok());
    EXPECT_EQ(end->signaled_externally, others);
  }
}

TEST_P(ProcessTreeTest, SeveralProcessesEndWithTheLast) {
  ProcessSpec spec = Three(Shell("sleep 0.0$RANK; echo $RANK"));
  Pipe pipes[3] = {MakePipe(), MakePipe(), MakePipe()};
  spec.stdout_fd = pipes[0].write.get();
  spec.additional[0].stdout_fd = pipes[1].write.get();
  spec.additional[1].stdout_fd = pipes[2].write.get();
  auto tree = ProcessTree::Start(spec, isolation_);
  ASSERT_TRUE(tree.ok()) << tree.status().message();
  for (int i = 0; i < 3; ++i) {
    pipes[i].write.Reset();
    EXPECT_EQ(ReadToEnd(pipes[i].read.get()), std::to_string(i) + "\n");
  }
  const auto end = (*tree)->Wait(kLong);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->ok());
  EXPECT_TRUE(NothingLeft());
}

TEST_P(ProcessTreeTest, TheFirstOfSeveralThatFailsDecidesAndTheOthersAreAskedThenKilled) {
  const auto dir = TempDir::Create();
  // Process 0 obeys and says so, process 2 does not.
  ProcessSpec spec =
      Three(Shell("case $RANK in 1) while test ! -e up0 -o ! -e up2; do sleep 0.01; done; exit 5;; "
                  "0) trap 'touch saved; exit 0' TERM;; 2) trap '' TERM;; esac; touch up$RANK; "
                  "while :; do sleep 0.01; done"));
  spec.work_dir = dir->path();
  spec.grace = milliseconds(300);
  const auto begin = SteadyClock::now();
  auto tree = ProcessTree::Start(spec, isolation_);
  ASSERT_TRUE(tree.ok()) << tree.status().message();
  const auto end = (*tree)->Wait(kLong);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->exit_code, 5);
  EXPECT_EQ(end->process, 1);
  EXPECT_GE(SteadyClock::now() - begin, milliseconds(300));
  EXPECT_TRUE(std::filesystem::exists(dir->path() / "saved"));
  EXPECT_TRUE(NothingLeft());
}

TEST_P(ProcessTreeTest, ASignalReachesAllOfSeveralAndAKillEndsThem) {
  const auto dir = TempDir::Create();
  ProcessSpec spec =
      Three(Shell("trap 'touch got$RANK' USR1; touch up$RANK; "
                  "while :; do sleep 0.01; done"));
  spec.work_dir = dir->path();
  auto tree = ProcessTree::Start(spec, isolation_);
  ASSERT_TRUE(tree.ok()) << tree.status().message();
  const auto all = [&](const std::string& name) {
    return Eventually([&] {
      for (const char* rank : {"0", "1", "2"}) {
        if (!std::filesystem::exists(dir->path() / (name + rank))) return false;
      }
      return true;
    });
  };
  ASSERT_TRUE(all("up"));
  ASSERT_TRUE((*tree)->Signal(SIGUSR1).ok());
  EXPECT_TRUE(all("got"));
  (*tree)->KillAll();
  const auto end = (*tree)->Wait(kLong);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->signal, SIGKILL);
  EXPECT_TRUE(NothingLeft());
}

TEST_P(ProcessTreeTest, NothingSurvivesTheProgramsEnd) {
  ProcessExit end;
  EXPECT_EQ(Output(Shell(std::string(kScatter) + "exit 4"), &end), "ready\n");
  EXPECT_EQ(end.exit_code, 4);
  EXPECT_TRUE(NothingLeft());  // at once: the end is told after the rest is gone
}

TEST_P(ProcessTreeTest, NothingSurvivesKillAll) {
  Pipe pipe = MakePipe();
  ProcessSpec spec = Shell(std::string(kScatter) + "sleep 1004");
  spec.stdout_fd = pipe.write.get();
  auto tree = ProcessTree::Start(spec, isolation_);
  ASSERT_TRUE(tree.ok()) << tree.status().message();
  pipe.write.Reset();
  ASSERT_EQ(ReadLine(pipe.read.get()), "ready");
  EXPECT_GE((*tree)->Pids().size(), 6u);
  EXPECT_EQ((*tree)->Pids().front(), (*tree)->pid());
  auto usage = (*tree)->Sample();
  ASSERT_TRUE(usage.ok());
  EXPECT_GE(usage->processes, 6);
  EXPECT_GT(usage->memory_bytes, 1 << 20);
  (*tree)->KillAll();
  auto end = (*tree)->Wait(kLong);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->signal, SIGKILL);
  EXPECT_FALSE(end->out_of_memory);
  EXPECT_TRUE(NothingLeft());
}

TEST_P(ProcessTreeTest, NothingSurvivesTheHandle) {
  Pipe pipe = MakePipe();
  {
    ProcessSpec spec = Shell(std::string(kScatter) + "sleep 1004");
    spec.stdout_fd = pipe.write.get();
    auto tree = ProcessTree::Start(spec, isolation_);
    ASSERT_TRUE(tree.ok()) << tree.status().message();
    pipe.write.Reset();
    ASSERT_EQ(ReadLine(pipe.read.get()), "ready");
  }
  EXPECT_TRUE(NothingLeft());
}

TEST_P(ProcessTreeTest, NothingSurvivesKillNineOfTheLauncher) {
  for (bool from_thread : {false, true}) {
    Pipe pipe = MakePipe();
    const pid_t launcher = ::fork();
    if (launcher == 0) {
      ProcessSpec spec = Shell(std::string(kScatter) + "sleep 1004");
      spec.stdout_fd = pipe.write.get();
      Result<std::unique_ptr<ProcessTree>> tree = Internal("not started");
      if (from_thread) {  // which ends: the tree must not end with it
        std::thread([&] { tree = ProcessTree::Start(spec, isolation_); }).join();
      } else {
        tree = ProcessTree::Start(spec, isolation_);
      }
      for (;;) ::pause();
    }
    pipe.write.Reset();
    ASSERT_EQ(ReadLine(pipe.read.get()), "ready");
    EXPECT_FALSE(NothingLeft());
    ::kill(launcher, SIGKILL);
    ::waitpid(launcher, nullptr, 0);
    EXPECT_TRUE(Eventually([&] { return NothingLeft(); }, seconds(5)));
    ASSERT_TRUE(RemoveCgroupsOf(isolation_.cgroups.Bases(), job_).ok());
  }
}

TEST_P(ProcessTreeTest, TheKillerOfInitOrGuardIsToldSo) {
  if (GetParam().tree == TreeMode::kGuard && !GetParam().groups)
    GTEST_SKIP() << "a guard killed with -9 is this mode's stated weakness";
  Pipe pipe = MakePipe();
  ProcessSpec spec = Shell(std::string(kScatter) + "sleep 1004");
  spec.stdout_fd = pipe.write.get();
  auto tree = ProcessTree::Start(spec, isolation_);
  ASSERT_TRUE(tree.ok()) << tree.status().message();
  pipe.write.Reset();
  ASSERT_EQ(ReadLine(pipe.read.get()), "ready");
  auto program = ReadProcessStat((*tree)->pid());
  ASSERT_TRUE(program.ok());
  ::kill(program->parent, SIGKILL);
  auto end = (*tree)->Wait(kLong);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->signal, SIGKILL);
  EXPECT_TRUE(Eventually([&] { return NothingLeft(); }, seconds(5)));
}

TEST_P(ProcessTreeTest, StartErrorsNameTheCause) {
  const auto message = [&](ProcessSpec spec) {
    auto tree = ProcessTree::Start(spec, isolation_);
    return tree.ok() ? std::string("started") : tree.status().message();
  };
  ProcessSpec spec = Shell("");
  spec.argv = {"no-such-program-here"};
  EXPECT_EQ(message(spec),
            "cannot start no-such-program-here: no such program in PATH (/usr/bin:/bin); install "
            "it, or give its path in the task's `command`");
  auto dir = TempDir::Create();
  ASSERT_TRUE(dir.ok());
  const std::string script = dir->path() / "script";
  ASSERT_TRUE(WriteFileAtomically(script, "echo hello\n", 0644).ok());
  spec.argv = {script};
  EXPECT_NE(message(spec).find("not an executable file"), std::string::npos);
  spec.argv = {"/no/such"};
  EXPECT_NE(message(spec).find("there is no such file"), std::string::npos);
  spec = Shell("true");
  spec.work_dir = "/no/such/dir";
  EXPECT_NE(message(spec).find("/no/such/dir"), std::string::npos);
  spec.argv.clear();
  EXPECT_NE(message(spec).find("needs a command"), std::string::npos);
  ASSERT_TRUE(WriteFileAtomically(script, "echo hello\n", 0755).ok());
  spec = Shell("");
  spec.argv = {script};
  EXPECT_NE(message(spec).find("#!"), std::string::npos);
  ASSERT_TRUE(WriteFileAtomically(script, "#!/no/interpreter\n", 0755).ok());
  EXPECT_NE(message(spec).find("interpreter"), std::string::npos);
  EXPECT_TRUE(NothingLeft());
}

TEST_P(ProcessTreeTest, ManyAtOnceFromManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) {
        ProcessSpec spec = Shell("exit " + std::to_string(10 + i));
        spec.name = "worker-" + std::to_string(i) + "." + std::to_string(round);
        auto tree = ProcessTree::Start(spec, isolation_);
        if (!tree.ok()) continue;
        auto end = (*tree)->Wait(kLong);
        right += end && end->exit_code == 10 + i ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 20);
}

// Grows by touching pages until it is stopped.
constexpr const char* kGrow = "exec tail /dev/zero";

TEST_P(ProcessTreeTest, ExceedingMemoryIsSaidToBeThat) {
  constexpr int64_t kLimit = 64 << 20;
  ProcessSpec spec = Shell(kGrow);
  spec.resources.memory_bytes = kLimit;
  auto tree = ProcessTree::Start(spec, isolation_);
  ASSERT_TRUE(tree.ok()) << tree.status().message();
  const bool enforced = !isolation_.cgroups.memory.empty();
  EXPECT_EQ((*tree)->memory_enforced(), enforced);
  std::optional<ProcessExit> end;
  ASSERT_TRUE(Eventually([&] {
    if (!enforced) (void)(*tree)->Sample();
    end = (*tree)->TryWait();
    return end.has_value();
  }));
  EXPECT_TRUE(end->out_of_memory);
  EXPECT_GE(end->peak_memory_bytes, kLimit * 9 / 10);
  if (enforced) {
    EXPECT_LE(end->peak_memory_bytes, kLimit);
  }
}

TEST_P(ProcessTreeTest, MemoryOfAGrandchildCounts) {
  if (isolation_.cgroups.memory.empty()) GTEST_SKIP() << "no memory controller";
  ProcessSpec spec = Shell("sh -c 'tail /dev/zero; true'; exit 1");
  spec.resources.memory_bytes = 48 << 20;
  ProcessExit end;
  Output(spec, &end);
  EXPECT_TRUE(end.out_of_memory);
}

TEST_P(ProcessTreeTest, ProcessorLimitHolds) {
  if (isolation_.cgroups.cpu.empty()) GTEST_SKIP() << "no cpu controller";
  ProcessSpec spec = Shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
  spec.resources.cpu = 0.2;
  const auto begin = SteadyClock::now();
  ProcessExit end;
  Output(spec, &end);
  const double wall = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  EXPECT_TRUE(end.ok());
  ASSERT_GT(end.cpu_seconds, 0.04);
  // One period's quota may be used before the first throttling.
  EXPECT_GT(wall, (end.cpu_seconds - 0.03) / 0.2 * 0.8);
}

TEST_P(ProcessTreeTest, ProcessLimitHolds) {
  if (isolation_.cgroups.pids.empty()) GTEST_SKIP() << "no pids controller";
  ProcessSpec spec = Shell("for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; echo survived");
  spec.max_processes = 4;
  ProcessExit end;
  EXPECT_EQ(Output(spec, &end).find("survived"), std::string::npos);
  EXPECT_FALSE(end.ok());
  EXPECT_TRUE(NothingLeft());
}

TEST_P(ProcessTreeTest, LeavesNoGroup) {
  ProcessSpec spec = Shell("true");
  spec.resources = {1.5, 64 << 20, 0};
  spec.max_processes = 100;
  ProcessExit end;
  Output(spec, &end);
  EXPECT_TRUE(end.ok());
  for (const std::string& job : JobsWithCgroups(isolation_.cgroups.Bases())) EXPECT_NE(job, job_);
}

INSTANTIATE_TEST_SUITE_P(
    Modes, ProcessTreeTest,
    testing::Values(Mode{TreeMode::kPidNamespace, false}, Mode{TreeMode::kPidNamespace, true},
                    Mode{TreeMode::kUserNamespace, false}, Mode{TreeMode::kUserNamespace, true},
                    Mode{TreeMode::kGuard, false}, Mode{TreeMode::kGuard, true}),
    ModeName);

// As somebody without privileges: in a child that has become nobody.
class UnprivilegedTest : public testing::TestWithParam<TreeMode> {};

TEST_P(UnprivilegedTest, StartsEndsAndLeavesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  const std::string mark = "host-test-" + RandomHex(4);
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr unsigned kNobody = 65534;
    if (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
        ::setresuid(kNobody, kNobody, kNobody) != 0) {
      ::_exit(99);
    }
    ::prctl(PR_SET_DUMPABLE, 1);  // as after an exec: else /proc/self belongs to root
    if (TreeModeWorks(TreeMode::kPidNamespace)) ::_exit(98);
    if (!TreeModeWorks(GetParam())) ::_exit(97);
    if (ProbeIsolation().cgroups.version != CgroupVersion::kNone) ::_exit(96);
    Isolation isolation;
    isolation.tree = GetParam();
    ProcessSpec spec;
    spec.job_id = spec.name = mark;
    spec.argv = {"sh", "-c", "setsid sleep 1000 & test $(id -u) = 65534 || exit 3; exit 42"};
    spec.env = {"PATH=/usr/bin:/bin", "HOST_TEST_MARK=" + mark};
    spec.work_dir = "/";
    auto tree = ProcessTree::Start(spec, isolation);
    if (!tree.ok()) ::_exit(95);
    auto end = (*tree)->Wait(kLong);
    ::_exit(end ? end->exit_code : 94);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 97) GTEST_SKIP() << "not permitted here";
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_TRUE(ProcessesWithVariable("HOST_TEST_MARK", mark).empty());
}

INSTANTIATE_TEST_SUITE_P(Modes, UnprivilegedTest,
                         testing::Values(TreeMode::kUserNamespace, TreeMode::kGuard),
                         [](const auto& param) {
                           return param.param == TreeMode::kGuard ? "guard" : "usernamespace";
                         });

}  // namespace
}  // namespace shoal::host
