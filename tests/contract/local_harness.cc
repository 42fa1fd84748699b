#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "contract/harness.h"
#include "engine/local/local_engine.h"
#include "host/usage.h"

namespace shoal::engine {
namespace {

using SteadyClock = std::chrono::steady_clock;

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
    DesiredTask task;
    task.role = role;
    task.index = index;
    task.work_dir = dir_.path();
    task.argv = {"/bin/sh", "-c", Script(kind)};
    if (kind == Kind::kCannotStart) task.argv = {"/no/such/program"};
    return task;
  }
  int Alive(const std::string& job_id) override {
    return static_cast<int>(host::ProcessesWithVariable(kJobVariable, job_id).size());
  }
  void Lose(const std::string& job_id, const std::string& role, int index) override {
    const std::string prefix = role + "/" + std::to_string(index) + "/";
    for (pid_t pid : host::ProcessesWithVariable(kJobVariable, job_id)) {
      auto task = host::ReadProcessVariable(pid, kTaskVariable);
      if (task.ok() && task->starts_with(prefix)) host::KillProcess(pid, 0);
    }
  }
  void Listen(const std::string& /*job_id*/, const Endpoint& endpoint) override {
    const json::object object{
        {"host", endpoint.host}, {"port", endpoint.port}, {"pid", ::getpid()}, {"started", "now"}};
    ASSERT_TRUE(WriteFileAtomically(dir_.path() / "coordinator.json", ToText(object)).ok());
  }
  bool Await(const std::function<bool()>& condition) override {
    const auto deadline = SteadyClock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (SteadyClock::now() > deadline) return false;
      ::poll(nullptr, 0, 1);
    }
    return true;
  }

 private:
  static std::string Script(Kind kind) {
    switch (kind) {
      case Kind::kStubborn:
        return "trap '' TERM; exec sleep 1000";
      case Kind::kSucceeds:
        return "exit 0";
      case Kind::kFailsOnce:
        return "test {incarnation} = 0 && exit 77; exec sleep 1000";
      case Kind::kFailsAlways:
        return "echo no corpus; exit 3";
      case Kind::kTalks:
        return "i=0; while [ $i -lt 199 ]; do echo line; i=$((i+1)); done; "
               "echo last words >&2; exec sleep 1000";
      case Kind::kRuns:
      case Kind::kCannotStart:
        break;
    }
    return "exec sleep 1000";
  }

  TempDir dir_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

std::unique_ptr<Harness> MakeLocalHarness() { return std::make_unique<LocalHarness>(); }

}  // namespace shoal::engine
