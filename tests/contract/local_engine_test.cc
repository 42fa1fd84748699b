// Tests of the local engine alone: real processes, adoption after a crash, complete removal.
#include "engine/local/local_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>

#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "engine/local/job_records.h"
#include "engine/local/job_remains.h"
#include "engine/process/spawn.h"
#include "engine/process/task_process.h"
#include "engine/tasks/job_files.h"
#include "host/cgroup/cgroup.h"
#include "host/process/process_tree.h"
#include "host/process/process_usage.h"

namespace shoal::engine {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;
using testing::HasSubstr;
using testing::Not;

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = SteadyClock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (SteadyClock::now() > deadline) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

class LocalEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    auto dir = TempDir::Create("local-engine");
    ASSERT_TRUE(dir.ok());
    dir_.emplace(std::move(*dir));
  }
  void TearDown() override {
    engine_.reset();
    EXPECT_TRUE(RemoveJobRemains(job_, host::FindCgroups().Bases()).ok());
  }
  std::unique_ptr<Engine> Make() {
    LocalEngineOptions options;
    options.restart.first = milliseconds(5);
    auto engine = MakeLocalEngine(options);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return std::move(engine).value();
  }
  DesiredTask Shell(const std::string& script, const std::string& role = "worker", int index = 0) {
    DesiredTask task;
    task.role = role;
    task.index = index;
    task.argv = {"sh", "-c", script};
    task.work_dir = dir_->path();
    return task;
  }
  DesiredJob Job(std::vector<DesiredTask> tasks) {
    return {job_, dir_->path().string(), std::move(tasks)};
  }
  std::vector<pid_t> Pids() { return host::ProcessesWithVariable(kJobVariable, job_); }
  std::string Read(const std::string& name) {
    return ReadFile(dir_->path() / name, 1 << 20).value_or("");
  }
  bool AwaitFile(const std::string& name, const std::string& content) {
    return Eventually([&] { return Read(name) == content; });
  }
  // A controller that starts the tasks and is killed with -9.
  void StartAndDie(const DesiredJob& job) {
    const pid_t controller = ::fork();
    if (controller == 0) {
      auto engine = Make();
      if (!engine->Apply(job).ok()) ::_exit(1);
      for (;;) ::pause();
    }
    EXPECT_TRUE(Eventually([&] { return Read("ready") == "ready\n"; }));
    EXPECT_TRUE(Eventually([&] {
      auto records = ReadRecords(dir_->path());
      return records.ok() && !records->tasks.empty() &&
             records->tasks.back().phase == TaskPhase::kRunning;
    }));
    ::kill(controller, SIGKILL);
    ::waitpid(controller, nullptr, 0);
  }

  std::optional<TempDir> dir_;
  const std::string job_ = "local-test-" + RandomHex(4);
  std::unique_ptr<Engine> engine_;
};

TEST_F(LocalEngineTest, ALockThatCannotBeOpenedIsNotTakenForAnotherProcess) {
  ASSERT_TRUE(MakeDirectories(dir_->path() / "engine" / "lock", 0700).ok());
  engine_ = Make();
  const Status applied = engine_->Apply(Job({Shell("true")}));
  EXPECT_THAT(applied.message(),
              testing::AllOf(HasSubstr("/engine/lock"), Not(HasSubstr("another shoal"))));
}

TEST_F(LocalEngineTest, ATaskIsASessionWithACleanEnvironmentAndALog) {
  ::setenv("LOCAL_ENGINE_TEST_SECRET", "1", 1);
  engine_ = Make();
  DesiredTask task = Shell(
      "env > env.txt; pwd > pwd.txt; ls -l /proc/self/fd > fds.txt; readlink /proc/$$/fd/0 > "
      "in.txt; "
      "cut -d' ' -f 1,6 /proc/$$/stat > ids.txt; echo out; echo err >&2; echo done > done.txt; "
      "exec sleep 1000");
  task.env = {{"MINE", "a b"}, {"HOME", "/elsewhere"}};
  ASSERT_TRUE(engine_->Apply(Job({task})).ok());
  ASSERT_TRUE(AwaitFile("done.txt", "done\n"));
  ::unsetenv("LOCAL_ENGINE_TEST_SECRET");
  const std::string env = Read("env.txt");
  EXPECT_THAT(env, HasSubstr("MINE=a b\n"));
  EXPECT_THAT(env, HasSubstr("HOME=/elsewhere\n"));
  EXPECT_THAT(env, HasSubstr("PATH="));
  EXPECT_THAT(env, HasSubstr("SHOAL_JOB_ID=" + job_ + "\n"));
  EXPECT_THAT(env, HasSubstr("SHOAL_TASK=worker/0/0\n"));
  EXPECT_THAT(env, Not(HasSubstr("LOCAL_ENGINE_TEST_SECRET")));
  EXPECT_EQ(Read("pwd.txt"), dir_->path().string() + "\n");
  EXPECT_EQ(Read("in.txt"), "/dev/null\n");
  EXPECT_EQ(Read("engine/worker-0.log"), "out\nerr\n");
  const std::string fds = Read("fds.txt");
  EXPECT_EQ(std::count(fds.begin(), fds.end(), '\n'), 5) << fds;  // "total", 0, 1, 2, ls's own
  const std::string ids = Read("ids.txt");
  const size_t space = ids.find(' ');
  EXPECT_EQ(ids.substr(0, space) + "\n", ids.substr(space + 1));  // its own session
  ASSERT_TRUE(engine_->Stop(job_, milliseconds(1000)).ok());
}

TEST_F(LocalEngineTest, AfterAKillOfTheControllerAnotherTakesOver) {
  StartAndDie(Job({Shell("exec sleep 1000", "coordinator"),
                   Shell("echo ready > ready; trap 'exit 0' TERM; sleep 1000 & wait")}));
  EXPECT_GE(Pids().size(), 2u);
  engine_ = Make();
  std::mutex mu;
  std::vector<TaskEvent> events;
  auto watch = engine_->Watch(job_, [&](const TaskEvent& event) {
    std::lock_guard lock(mu);
    events.push_back(event);
  });
  auto tasks = engine_->Adopt(job_, dir_->path());
  ASSERT_TRUE(tasks.ok()) << tasks.status().message();
  ASSERT_EQ(tasks->size(), 2u);
  for (const TaskStatus& task : *tasks) EXPECT_EQ(task.phase, TaskPhase::kRunning);
  // A lost one is started again with the command that was recorded.
  ASSERT_TRUE(host::KillProcess(static_cast<pid_t>((*tasks)[0].pid), 0));
  ASSERT_TRUE(Eventually([&] {
    std::lock_guard lock(mu);
    return !events.empty() && events.back().phase == TaskPhase::kRunning;
  }));
  {
    std::lock_guard lock(mu);
    EXPECT_EQ(events.back().incarnation, 1);
    EXPECT_EQ(events.front().phase, TaskPhase::kLost);
  }
  ASSERT_TRUE(engine_->Stop(job_, milliseconds(1000)).ok());
  EXPECT_TRUE(Pids().empty());
  EXPECT_FALSE(ReadRecords(dir_->path()).ok());
}

TEST_F(LocalEngineTest, TheEndOfAnAdoptedTaskIsKnown) {
  StartAndDie(Job({Shell("exec sleep 1000", "coordinator"),
                   Shell("echo ready > ready; while ! test -e go; do sleep 0.01; done; exit 0")}));
  engine_ = Make();
  std::mutex mu;
  std::optional<TaskEvent> event;
  auto watch = engine_->Watch(job_, [&](const TaskEvent& told) {
    std::lock_guard lock(mu);
    event = told;
  });
  ASSERT_TRUE(engine_->Adopt(job_, dir_->path()).ok());
  ASSERT_TRUE(WriteFileAtomically(dir_->path() / "go", "").ok());
  ASSERT_TRUE(Eventually([&] {
    std::lock_guard lock(mu);
    return event.has_value();
  }));
  EXPECT_EQ(event->phase, TaskPhase::kEnded);  // exit 0 is no loss
  EXPECT_EQ(event->end.exit_code, 0);
}

TEST_F(LocalEngineTest, WithoutRecordsTasksAreFoundByTheirEnvironment) {
  StartAndDie(Job({Shell("echo ready > ready; exec sleep 1000", "worker", 3)}));
  std::filesystem::remove(dir_->path() / "engine/tasks.json");
  engine_ = Make();
  auto tasks = engine_->Adopt(job_, dir_->path());
  ASSERT_TRUE(tasks.ok());
  ASSERT_EQ(tasks->size(), 1u);
  EXPECT_EQ((*tasks)[0].role, "worker");
  EXPECT_EQ((*tasks)[0].index, 3);
  EXPECT_EQ((*tasks)[0].phase, TaskPhase::kRunning);
  ASSERT_TRUE(engine_->Stop(job_, milliseconds(1000)).ok());
  EXPECT_TRUE(Pids().empty());
}

TEST_F(LocalEngineTest, DamagedRecordsDoNotKeepAnybodyFromStopping) {
  StartAndDie(Job({Shell("echo ready > ready; exec sleep 1000")}));
  ASSERT_TRUE(WriteFileAtomically(dir_->path() / "engine/tasks.json", "{\"version\":1").ok());
  engine_ = Make();
  auto tasks = engine_->Adopt(job_, dir_->path());
  ASSERT_TRUE(tasks.ok());
  EXPECT_EQ(tasks->size(), 1u);
  ASSERT_TRUE(engine_->Stop(job_, milliseconds(1000)).ok());
  EXPECT_TRUE(Pids().empty());
}

TEST_F(LocalEngineTest, ARecordedPidOfSomebodyElseIsLeftAlone) {
  const pid_t bystander = ::fork();
  if (bystander == 0) {
    for (;;) ::pause();
  }
  ASSERT_TRUE(MakeDirectories(EngineDir(dir_->path())).ok());
  JobRecords records;
  records.job_id = job_;
  TaskRecord record;
  record.desired = Shell("exit 0");
  record.phase = TaskPhase::kRunning;
  record.pid = bystander;
  record.start_ticks = 1;  // of the process that had this pid before
  records.tasks.push_back(record);
  ASSERT_TRUE(WriteRecords(dir_->path(), records).ok());
  engine_ = Make();
  auto tasks = engine_->Adopt(job_, dir_->path());
  ASSERT_TRUE(tasks.ok());
  EXPECT_TRUE(tasks->empty());
  ASSERT_TRUE(engine_->Stop(job_, milliseconds(0)).ok());
  EXPECT_TRUE(host::IsAlive(bystander));
  ::kill(bystander, SIGKILL);
  ::waitpid(bystander, nullptr, 0);
}

TEST_F(LocalEngineTest, StopTakesWhatATaskLeftBehind) {
  engine_ = Make();
  ASSERT_TRUE(engine_
                  ->Apply(Job({Shell("trap '' TERM; setsid sh -c 'sleep 1000 & sleep 1001' & "
                                     "(setsid setsid sleep 1002 &); echo ready > ready; exit 0")}))
                  .ok());
  ASSERT_TRUE(AwaitFile("ready", "ready\n"));
  ASSERT_TRUE(Eventually([&] { return Pids().size() >= 4; }));
  ASSERT_TRUE(engine_->Stop(job_, milliseconds(100)).ok());
  EXPECT_TRUE(Pids().empty());
}

TEST_F(LocalEngineTest, StopTakesTheProgramsAndGroupsOfAKilledLauncher) {
  const host::CgroupLayout groups = host::FindCgroups();
  if (!groups.any()) GTEST_SKIP() << "no control groups can be made here";
  // A launcher that holds its program by a guard, which we kill too: the worst case.
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    host::ProcessSpec spec;
    spec.job_id = job_;
    spec.name = "worker-0.0";
    spec.argv = {"sh", "-c", "setsid sleep 1000 & env -i setsid sleep 1001 & exec sleep 1002"};
    spec.env = {"PATH=/usr/bin:/bin", std::string(kJobVariable) + "=" + job_};
    spec.resources.memory_bytes = 64 << 20;
    auto tree = host::ProcessTree::Start(spec, {host::TreeMode::kGuard, groups});
    if (!tree.ok()) ::_exit(1);
    auto program = host::ReadProcessStat((*tree)->pid());
    (void)Eventually([&] { return (*tree)->Pids().size() >= 3; });
    ::kill(program->parent, SIGKILL);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(launcher, &status, 0), launcher);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(host::PidsInCgroupsOf(groups.Bases(), job_).empty());
  engine_ = Make();
  ASSERT_TRUE(engine_->Stop(job_, milliseconds(100)).ok());
  EXPECT_TRUE(Pids().empty());
  for (const std::string& job : host::JobsWithCgroups(groups.Bases())) EXPECT_NE(job, job_);
}

TEST_F(LocalEngineTest, AJobHasOneEngine) {
  engine_ = Make();
  const DesiredJob job = Job({Shell("exec sleep 1000")});
  ASSERT_TRUE(engine_->Apply(job).ok());
  ASSERT_TRUE(Eventually([&] { return Pids().size() == 1; }));
  auto second = Make();
  EXPECT_EQ(second->Apply(job).code(), Code::kFailedPrecondition);
  auto seen = second->Adopt(job_, dir_->path());
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(seen->size(), 1u);
  EXPECT_EQ(second->Apply(job).code(), Code::kFailedPrecondition);
  EXPECT_EQ(Pids().size(), 1u);
  engine_.reset();  // as the death of its process does
  EXPECT_EQ(second->Apply(job).code(), Code::kFailedPrecondition);
  ASSERT_TRUE(second->Adopt(job_, dir_->path()).ok());
  EXPECT_TRUE(second->Apply(job).ok());
  EXPECT_EQ(Pids().size(), 1u);
  ASSERT_TRUE(second->Stop(job_, milliseconds(100)).ok());
}

TEST_F(LocalEngineTest, StartErrorsNameTheCause) {
  engine_ = Make();
  std::mutex mu;
  std::map<int, std::string> reasons;
  auto watch = engine_->Watch(job_, [&](const TaskEvent& event) {
    std::lock_guard lock(mu);
    if (event.phase == TaskPhase::kRefused) reasons[event.index] = event.end.reason;
  });
  DesiredTask no_program = Shell("", "worker", 0);
  no_program.argv = {"no-such-program-here"};
  DesiredTask no_directory = Shell("", "worker", 1);
  no_directory.work_dir = "/no/such/directory";
  DesiredTask not_executable = Shell("", "worker", 2);
  ASSERT_TRUE(WriteFileAtomically(dir_->path() / "plain", "").ok());
  not_executable.argv = {dir_->path() / "plain"};
  ASSERT_TRUE(engine_->Apply(Job({no_program, no_directory, not_executable})).ok());
  ASSERT_TRUE(Eventually([&] {
    std::lock_guard lock(mu);
    return reasons.size() == 3;
  }));
  EXPECT_THAT(reasons[0], HasSubstr("no-such-program-here: there is no such program"));
  EXPECT_THAT(reasons[1], HasSubstr("/no/such/directory"));
  EXPECT_THAT(reasons[2], HasSubstr("not an executable file"));
  EXPECT_EQ(engine_->Apply({job_, "relative/dir", {Shell("true")}}).code(),
            Code::kOk);  // known job
  EXPECT_EQ(engine_->Apply({job_ + "x", "relative/dir", {Shell("true")}}).code(),
            Code::kInvalidArgument);
}

TEST_F(LocalEngineTest, DialChecksWhatItReads) {
  engine_ = Make();
  ASSERT_TRUE(engine_->Apply(Job({Shell("exec sleep 1000", "coordinator")})).ok());
  const auto dial = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(dir_->path() / "coordinator.json", text).ok());
    return engine_->Dial(job_).status().code();
  };
  const std::string self = std::to_string(::getpid());
  EXPECT_EQ(dial("{\"host\":\"h\",\"port\":1,\"pid\":" + self + "}"), Code::kOk);
  EXPECT_EQ(dial("{\"host\":\"h\",\"port\":1,\"pid\":999999999}"), Code::kUnavailable);
  EXPECT_EQ(dial("{\"host\":\"h\",\"port\":65536,\"pid\":" + self + "}"), Code::kDataLoss);
  EXPECT_EQ(dial("{\"host\":\"h\",\"port\":1,\"pid\":-1}"), Code::kDataLoss);
  EXPECT_EQ(dial("{\"host\":\"h\"}"), Code::kInvalidArgument);
  EXPECT_EQ(dial("garbage"), Code::kInvalidArgument);
  EXPECT_EQ(dial(std::string(5000, ' ')), Code::kResourceExhausted);
}

TEST(Records, GoThroughTextUnchanged) {
  JobRecords records;
  records.job_id = "job-1";
  records.group_bases = {"/sys/fs/cgroup/memory/x"};
  TaskRecord record;
  record.desired.role = "worker";
  record.desired.index = 2;
  record.desired.argv = {"/bin/x", "a \"b\"\n", "{incarnation}"};
  record.desired.env = {{"A", "b=c"}};
  record.desired.work_dir = "/w";
  record.desired.restart_if_lost = false;
  record.incarnation = 3;
  record.phase = TaskPhase::kLost;
  record.pid = 17;
  record.start_ticks = 1'234'567;
  records.tasks.push_back(record);
  auto read = DecodeRecords(EncodeRecords(records));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(EncodeRecords(*read), EncodeRecords(records));
  EXPECT_EQ(read->tasks[0].desired.argv, record.desired.argv);
  EXPECT_EQ(read->tasks[0].start_ticks, record.start_ticks);
  EXPECT_EQ(read->tasks[0].phase, TaskPhase::kLost);
}

TEST(Records, DamageIsNoticed) {
  JobRecords records;
  records.job_id = "job-1";
  TaskRecord record;
  record.desired.role = "worker";
  record.desired.argv = {"x"};
  records.tasks.push_back(record);
  const std::string good = EncodeRecords(records);
  for (size_t size = 0; size + 2 < good.size(); ++size)
    EXPECT_FALSE(DecodeRecords(good.substr(0, size)).ok()) << size;
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return DecodeRecords(text.replace(at, from.size(), to)).status().message();
  };
  EXPECT_THAT(broken("\"version\":1", "\"version\":2"), HasSubstr("another version"));
  EXPECT_THAT(broken("\"worker\"", "\"../worker\""), HasSubstr("role"));
  EXPECT_THAT(broken("\"index\":0", "\"index\":-1"), HasSubstr("index"));
  EXPECT_THAT(broken("\"starting\"", "\"flying\""), HasSubstr("flying"));
  EXPECT_THAT(broken("[\"x\"]", "[]"), HasSubstr("argv"));
  EXPECT_THAT(broken("[\"x\"]", "[1]"), HasSubstr("argv"));
  EXPECT_THAT(broken("\"pid\":0", "\"pid\":99999999999"), HasSubstr("pid"));
}

}  // namespace
}  // namespace shoal::engine
