// Pods of a real cluster on this machine, which $KUBECONFIG names (script/test-cluster kubernetes
// brings it up), in an image with busybox in it, $SHOAL_TEST_IMAGE. Their processes are this
// machine's.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "contract/harness.h"
#include "contract/shell_harness.h"
#include "engine/kubernetes/kubernetes_engine.h"
#include "engine/process/task_process.h"
#include "host/process/process_usage.h"

namespace shoal::engine {
namespace {

class KubernetesHarness final : public ShellHarness {
 public:
  // The cluster restarts a lost task after 10 s, 20 s, 40 s, 80 s.
  KubernetesHarness() : ShellHarness(std::chrono::seconds(240), true) {}
  void Prepare(DesiredJob* job) override {
    const char* image = std::getenv("SHOAL_TEST_IMAGE");
    job->image = image != nullptr ? image : "shoal.test/busybox:1";
  }
  // A task may be several processes.
  int Alive(const std::string& job_id) override {
    std::set<std::string> tasks;
    for (const pid_t pid : host::ProcessesWithVariable(kJobVariable, job_id)) {
      auto task = host::ReadProcessVariable(pid, kTaskVariable);
      if (task.ok()) tasks.insert(*task);
    }
    return static_cast<int>(tasks.size());
  }
  bool DialsRelay() override { return true; }
  // Where the API server's proxy looks for it is in the pod; that it runs is enough for a relay.
  void Listen(const std::string& job_id, const Endpoint& /*endpoint*/) override {
    EXPECT_TRUE(Await([&] { return engine().Dial(job_id).ok(); }));
  }

 private:
  Result<std::unique_ptr<Engine>> Make() override {
    KubernetesEngineOptions options;
    return MakeKubernetesEngine(options);
  }
};

}  // namespace

std::vector<EngineUnderTest> EnginesUnderTest() {
  return {{"kubernetes", MakeHarness<KubernetesHarness>}};
}

}  // namespace shoal::engine
