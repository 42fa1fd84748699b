#include <gtest/gtest.h>

#include "base/file.h"
#include "contract/harness.h"
#include "contract/shell_tasks.h"
#include "engine/local/local_engine.h"

namespace shoal::engine {
namespace {

class LocalHarness final : public Harness {
 public:
  LocalHarness() : dir_(std::move(TempDir::Create("contract").value())) { Reopen(); }
  Engine& engine() override { return *engine_; }
  void Reopen() override {
    engine_.reset();
    LocalEngineOptions options;
    options.restart.first = std::chrono::milliseconds(5);
    auto engine = MakeLocalEngine(options);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = std::move(*engine);
  }
  std::string job_dir() override { return dir_.path(); }
  DesiredTask Task(Kind kind, const std::string& role, int index) override {
    return ShellTask(kind, role, index, dir_.path());
  }
  int Alive(const std::string& job_id) override { return AliveHere(job_id); }
  void Lose(const std::string& job_id, const std::string& role, int index) override {
    LoseHere(job_id, role, index);
  }
  void Listen(const std::string& /*job_id*/, const Endpoint& endpoint) override {
    WriteCoordinatorFile(dir_.path(), endpoint);
  }
  bool Await(const std::function<bool()>& condition) override {
    return AwaitHere(condition, std::chrono::seconds(20));
  }

 private:
  TempDir dir_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

std::unique_ptr<Harness> MakeLocalHarness() { return std::make_unique<LocalHarness>(); }

}  // namespace shoal::engine
