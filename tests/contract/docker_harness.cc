// Containers of a real daemon, which $DOCKER_HOST names, in an image with busybox in it, which
// $SHOAL_TEST_IMAGE names (script/test-cluster docker brings both up).
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "base/json.h"
#include "contract/harness.h"
#include "engine/docker/docker_api.h"
#include "engine/docker/docker_engine.h"

namespace shoal::engine {
namespace {

using SteadyClock = std::chrono::steady_clock;

class DockerHarness final : public Harness {
 public:
  DockerHarness() : dir_(std::move(TempDir::Create("contract").value())) {
    const char* image = std::getenv("SHOAL_TEST_IMAGE");
    image_ = image != nullptr ? image : "shoal-test/busybox:1";
    auto api = docker::DockerApi::Connect();
    if (api.ok()) api_ = std::move(*api);
    EXPECT_NE(api_, nullptr) << api.status().message();
    Reopen();
  }
  Engine& engine() override { return *engine_; }
  void Reopen() override {
    engine_.reset();
    DockerEngineOptions options;
    options.restart.first = std::chrono::milliseconds(5);
    engine_ = MakeDockerEngine(options);
  }
  std::string job_dir() override { return dir_.path(); }
  void Prepare(DesiredJob* job) override { job->image = image_; }
  DesiredTask Task(Kind kind, const std::string& role, int index) override {
    DesiredTask task;
    task.role = role;
    task.index = index;
    task.work_dir = dir_.path();
    task.argv = {"/bin/sh", "-c", Script(kind)};
    if (kind == Kind::kCannotStart) task.argv = {"/no/such/program"};
    return task;
  }
  int Alive(const std::string& job_id) override {
    int alive = 0;
    for (const auto& one : Containers(job_id)) alive += one.running ? 1 : 0;
    return alive;
  }
  void Lose(const std::string& job_id, const std::string& role, int index) override {
    for (const auto& one : Containers(job_id)) {
      if (one.running && one.task.role == role && one.task.index == index) {
        EXPECT_TRUE(api_->Kill(one.id, "KILL").ok());
      }
    }
  }
  void Listen(const std::string& /*job_id*/, const Endpoint& endpoint) override {
    const json::object object{
        {"host", endpoint.host}, {"port", endpoint.port}, {"pid", ::getpid()}, {"started", "now"}};
    ASSERT_TRUE(WriteFileAtomically(dir_.path() / "coordinator.json", ToText(object)).ok());
  }
  bool Await(const std::function<bool()>& condition) override {
    const auto deadline = SteadyClock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (SteadyClock::now() > deadline) return false;
      ::poll(nullptr, 0, 5);
    }
    return true;
  }

 private:
  std::vector<docker::ContainerSummary> Containers(const std::string& job_id) {
    auto containers = api_->List(job_id);
    EXPECT_TRUE(containers.ok()) << containers.status().message();
    return containers.value_or({});
  }
  // The first process of a container gets no signal that it has not asked for.
  static std::string Script(Kind kind) {
    const std::string runs = "trap 'exit 143' TERM; while :; do sleep 1000 & wait; done";
    switch (kind) {
      case Kind::kStubborn:
        return "trap '' TERM; while :; do sleep 1000; done";
      case Kind::kSucceeds:
        return "exit 0";
      case Kind::kFailsOnce:
        return "test {incarnation} = 0 && exit 77; " + runs;
      case Kind::kFailsAlways:
        return "echo no corpus; exit 3";
      case Kind::kTalks:
        return "i=0; while [ $i -lt 199 ]; do echo line; i=$((i+1)); done; echo last words; " +
               runs;
      case Kind::kRuns:
      case Kind::kCannotStart:
        break;
    }
    return runs;
  }

  TempDir dir_;
  std::string image_;
  std::unique_ptr<docker::DockerApi> api_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

std::vector<EngineUnderTest> EnginesUnderTest() {
  return {{"docker", [] { return std::unique_ptr<Harness>(std::make_unique<DockerHarness>()); }}};
}

}  // namespace shoal::engine
