#include <gtest/gtest.h>

#include "contract/harness.h"
#include "engine/fake/fake_engine.h"

namespace shoal::engine {
namespace {

using std::chrono::milliseconds;

class FakeHarness final : public Harness {
 public:
  FakeHarness() { Reopen(); }
  Engine& engine() override { return *engine_; }
  void Reopen() override {
    engine_.reset();
    engine_ = std::make_unique<FakeEngine>(world_);
  }
  std::string job_dir() override { return "/fake"; }
  DesiredTask Task(TaskBehavior kind, const std::string& role, int index) override {
    TaskKnobs knobs;
    switch (kind) {
      case TaskBehavior::kRuns:
        break;
      case TaskBehavior::kStubborn:
        knobs.ignores_term = true;
        break;
      case TaskBehavior::kSucceeds:
        knobs.run_for = milliseconds(1);
        break;
      case TaskBehavior::kFailsOnce:
        knobs.run_for = milliseconds(1);
        knobs.exit_code = 77;
        knobs.only_first = true;
        break;
      case TaskBehavior::kFailsAlways:
        knobs.run_for = milliseconds(1);
        knobs.exit_code = 3;
        knobs.says = "no corpus";
        break;
      case TaskBehavior::kCannotStart:
        knobs.refuse = "cannot start /no/such/program: there is no such program";
        break;
      case TaskBehavior::kTalks:
        knobs.says = "aside\n";
        for (int i = 0; i < 199; ++i) knobs.says += "line\n";
        knobs.says += "last words";
        break;
    }
    world_.SetKnobs(role, index, knobs);
    DesiredTask task;
    task.role = role;
    task.index = index;
    task.argv = {"fake"};
    return task;
  }
  std::vector<std::string> Hosts() override { return {"here"}; }
  int Alive(const std::string& job_id) override { return world_.Running(job_id); }
  void KillTask(const std::string& job_id, const std::string& role, int index) override {
    world_.KillTask(job_id, role, index);
  }
  void Listen(const std::string& job_id, const Endpoint& endpoint) override {
    world_.SetEndpoint(job_id, endpoint);
  }
  bool Await(const std::function<bool()>& condition) override {
    constexpr int kSteps = 100'000;
    for (int i = 0; i < kSteps; ++i) {
      world_.Advance(milliseconds(1));
      if (condition()) return true;
    }
    return false;
  }

 private:
  FakeClock clock_;
  FakeWorld world_{&clock_};
  std::unique_ptr<FakeEngine> engine_;
};

TEST(FakeEngine, CommandsInTasksDoWhatTheTestSays) {
  FakeClock clock;
  FakeWorld world(&clock);
  FakeEngine engine(world);
  DesiredJob job{"job-1", "/fake", {}};
  DesiredTask& task = job.tasks.emplace_back();
  task.role = "worker";
  task.argv = {"sleep"};
  ASSERT_TRUE(engine.Apply(job).ok());
  world.Advance(milliseconds(10));
  ExecSpec spec;
  spec.argv = {"ls", "-l"};
  EXPECT_EQ(engine.Exec("job-1", "worker", 0, spec).value()->Wait()->exit_code, 0);
  world.SetExec([](const std::string& role, int index, const ExecSpec& what) {
    return ExecEnd{role == "worker" && index == 0 && what.argv[1] == "-l" ? 7 : 1, 0};
  });
  EXPECT_EQ(engine.Exec("job-1", "worker", 0, spec).value()->Wait()->exit_code, 7);
  const auto told = engine.Exec("job-1", "worker", 0, spec).value();
  told->Signal(15);
  EXPECT_EQ(told->Wait()->signal, 15);
  const auto orphan = engine.Exec("job-1", "worker", 0, spec).value();
  world.KillTask("job-1", "worker", 0);
  world.Advance(milliseconds(1));
  EXPECT_EQ(orphan->Wait()->signal, 9);
}

}  // namespace

std::unique_ptr<Harness> MakeFakeHarness() { return std::make_unique<FakeHarness>(); }

}  // namespace shoal::engine
