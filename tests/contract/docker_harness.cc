// Containers of a real daemon, which $DOCKER_HOST names, in an image with busybox in it, which
// $SHOAL_TEST_IMAGE names (script/test-cluster docker brings both up).
#include <gtest/gtest.h>

#include <cstdlib>

#include "contract/harness.h"
#include "contract/shell_harness.h"
#include "engine/docker/docker_api.h"
#include "engine/docker/docker_engine.h"

namespace shoal::engine {
namespace {

class DockerHarness final : public OptionsHarness<DockerEngineOptions, MakeDockerEngine> {
 public:
  DockerHarness() : OptionsHarness(std::chrono::seconds(60), true) {
    const char* image = std::getenv("SHOAL_TEST_IMAGE");
    image_ = image != nullptr ? image : "shoal-test/busybox:1";
    auto api = docker::DockerApi::Connect();
    if (api.ok()) api_ = std::move(*api);
    EXPECT_NE(api_, nullptr) << api.status().message();
  }
  void Prepare(DesiredJob* job) override { job->image = image_; }
  int Alive(const std::string& job_id) override {
    int alive = 0;
    for (const auto& one : Containers(job_id)) alive += one.running ? 1 : 0;
    return alive;
  }
  void KillTask(const std::string& job_id, const std::string& role, int index) override {
    for (const auto& one : Containers(job_id)) {
      if (one.running && one.task.role == role && one.task.index == index) {
        EXPECT_TRUE(api_->Kill(one.id, "KILL").ok());
      }
    }
  }

 private:
  std::vector<docker::ContainerSummary> Containers(const std::string& job_id) {
    auto containers = api_->List(job_id);
    EXPECT_TRUE(containers.ok()) << containers.status().message();
    return containers.value_or({});
  }

  std::string image_;
  std::unique_ptr<docker::DockerApi> api_;
};

}  // namespace

std::vector<EngineUnderTest> EnginesUnderTest() { return {{"docker", MakeHarness<DockerHarness>}}; }

}  // namespace shoal::engine
