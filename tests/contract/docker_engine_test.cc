// Tests of the Docker engine alone: container settings reach the container. Uses the daemon of
// docker_harness.cc.
#include "engine/docker/docker_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <mutex>

#include "base/file.h"
#include "base/id.h"
#include "contract/harness.h"

namespace shoal::engine {
namespace {

using testing::HasSubstr;

class DockerEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    harness_ = EnginesUnderTest().at(0).make();
    watch_ = harness_->engine().Watch(job_.job_id, [this](const TaskEvent& event) {
      std::lock_guard lock(mu_);
      events_.push_back(event);
    });
    job_.job_dir = harness_->job_dir();
    harness_->Prepare(&job_);
  }
  void TearDown() override {
    watch_.reset();
    EXPECT_TRUE(harness_->engine().Stop(job_.job_id, std::chrono::milliseconds(0)).ok());
    EXPECT_EQ(harness_->Alive(job_.job_id), 0);
  }
  // Starts one task of a shell script.
  void Start(const std::string& script, const job::Resources& resources) {
    DesiredTask task = harness_->Task(TaskBehavior::kRuns, "worker", 0);
    task.argv = {"/bin/sh", "-c", script};
    task.resources = resources;
    task.restart_if_lost = false;
    job_.tasks = {task};
    EXPECT_EQ(harness_->engine().Apply(job_).message(), "");
  }
  // The task's last event, once it has got to `phase` or further.
  TaskEvent AwaitPhase(TaskPhase phase) {
    const auto reached = [&] {
      std::lock_guard lock(mu_);
      return !events_.empty() && events_.back().phase >= phase;
    };
    EXPECT_TRUE(harness_->Await(reached));
    std::lock_guard lock(mu_);
    return events_.empty() ? TaskEvent{} : events_.back();
  }
  TaskEvent AwaitEnd() { return AwaitPhase(TaskPhase::kEnded); }
  // Runs one task of a shell script until it has ended.
  TaskEvent Run(const std::string& script, const job::Resources& resources = {}) {
    Start(script, resources);
    return AwaitEnd();
  }
  std::string Said() {
    return harness_->engine().TaskLog(job_.job_id, "worker", 0, 10'000).value_or("?");
  }

  std::unique_ptr<Harness> harness_;
  DesiredJob job_{"docker-" + RandomHex(4), "", {}};
  std::unique_ptr<Engine::Watcher> watch_;
  std::mutex mu_;
  std::vector<TaskEvent> events_;  // guarded by mu_
};

TEST_F(DockerEngineTest, SettingsReachTheContainer) {
  const auto outside = TempDir::Create("outside");
  ASSERT_TRUE(outside.ok());
  ASSERT_TRUE(WriteFileAtomically(outside->path() / "text", "from outside\n").ok());
  job_.container.mounts = {{outside->path(), "/in", true}, {outside->path(), "/out", false}};
  job_.container.work_dir = "/in";
  job_.container.pids = 77;
  job_.container.shm_bytes = 3 << 20;
  const TaskEvent end =
      Run("pwd; cat text; touch nothing || echo read only; echo back > /out/back; "
          "cat /sys/fs/cgroup/pids/pids.max || cat /sys/fs/cgroup/pids.max; "
          "dd if=/dev/zero of=/dev/shm/x bs=1024 count=4096 || echo full");
  EXPECT_EQ(end.end.exit_code, 0);
  for (const char* words : {"/in\n", "from outside\n", "read only\n", "77\n", "full\n"})
    EXPECT_THAT(Said(), HasSubstr(words));
  EXPECT_EQ(ReadFile(outside->path() / "back", 100).value_or("?"), "back\n");
}

TEST_F(DockerEngineTest, TheUserIsTheOneThatIsNamed) {
  job_.container.user = "7:8";
  EXPECT_EQ(Run("id -u; id -g").end.exit_code, 0);
  EXPECT_EQ(Said(), "7\n8\n");
}

TEST_F(DockerEngineTest, OutOfMemoryIsToldFromAKill) {
  // The daemon's runtime watches the memory of a container from a moment after its first process
  // began, and never reports what happened before. It does so once the start is answered.
  const auto outside = TempDir::Create("outside");
  ASSERT_TRUE(outside.ok());
  job_.container.mounts = {{outside->path(), "/in", true}};
  Start("until [ -e /in/go ]; do sleep 1; done; exec tail /dev/zero", {0, int64_t{32} << 20, 0});
  ASSERT_EQ(AwaitPhase(TaskPhase::kRunning).phase, TaskPhase::kRunning);
  ASSERT_TRUE(WriteFileAtomically(outside->path() / "go", "").ok());
  const TaskEvent end = AwaitEnd();
  EXPECT_TRUE(end.end.out_of_memory);
  EXPECT_EQ(end.end.signal, 9);
  EXPECT_THAT(end.end.reason, HasSubstr("memory limit of 32 MiB; raise resources.memory"));
}

TEST_F(DockerEngineTest, AMountOfNothingIsRefusedWithItsName) {
  job_.container.mounts = {{"/no/such/place", "/in", true}};
  const TaskEvent end = Run("true");
  EXPECT_EQ(end.phase, TaskPhase::kRefused);
  EXPECT_THAT(end.end.reason, HasSubstr("/no/such/place"));
}

}  // namespace
}  // namespace shoal::engine
