#include "contract/shell_harness.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>

#include "base/json.h"
#include "engine/process/task_process.h"
#include "host/process/process_usage.h"

namespace shoal::engine {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::string Script(TaskBehavior kind, bool first_process) {
  const std::string runs = first_process
                               ? "trap 'exit 143' TERM; while :; do sleep 1000 & wait; done"
                               : "exec sleep 1000";
  switch (kind) {
    case TaskBehavior::kStubborn:
      return "trap '' TERM; exec sleep 1000";
    case TaskBehavior::kSucceeds:
      return "exit 0";
    case TaskBehavior::kFailsOnce:
      return "test {incarnation} = 0 && exit 77; " + runs;
    case TaskBehavior::kFailsAlways:
      return "echo no corpus; exit 3";
    case TaskBehavior::kTalks:
      return "echo aside >&2; i=0; while [ $i -lt 199 ]; do echo line; i=$((i+1)); done; "
             "echo last words; " +
             runs;
    case TaskBehavior::kRuns:
    case TaskBehavior::kCannotStart:
      break;
  }
  return runs;
}

}  // namespace

std::string HelperProgram() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "engine_helper";
}

ShellHarness::ShellHarness(std::chrono::seconds patience, bool first_process)
    : patience_(patience),
      first_process_(first_process),
      dir_(std::move(TempDir::Create("contract").value())) {}

void ShellHarness::Reopen() {
  engine_.reset();
  auto engine = Make();
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  engine_ = std::move(*engine);
}

DesiredTask ShellHarness::Task(TaskBehavior kind, const std::string& role, int index) {
  DesiredTask task;
  task.role = role;
  task.index = index;
  task.work_dir = dir_.path();
  task.argv = {"/bin/sh", "-c", Script(kind, first_process_)};
  if (kind == TaskBehavior::kCannotStart) task.argv = {"/no/such/program"};
  return task;
}

int ShellHarness::Alive(const std::string& job_id) {
  return static_cast<int>(host::ProcessesWithVariable(kJobVariable, job_id).size());
}

void ShellHarness::KillTask(const std::string& job_id, const std::string& role, int index) {
  const std::string prefix = role + "/" + std::to_string(index) + "/";
  // A shell that becomes its program at this moment has no environment to be known by.
  EXPECT_TRUE(Await([&] {
    bool any = false;
    for (pid_t pid : host::ProcessesWithVariable(kJobVariable, job_id)) {
      auto task = host::ReadProcessVariable(pid, kTaskVariable);
      if (!task.ok() || !task->starts_with(prefix)) continue;
      host::KillProcess(pid, 0);
      any = true;
    }
    return any;
  }));
}

void ShellHarness::Listen(const std::string& /*job_id*/, const Endpoint& endpoint) {
  const json::object object{
      {"host", endpoint.host}, {"port", endpoint.port}, {"pid", ::getpid()}, {"started", "now"}};
  ASSERT_TRUE(WriteFileAtomically(dir_.path() / "coordinator.json", ToText(object)).ok());
}

bool ShellHarness::Await(const std::function<bool()>& condition) {
  const auto deadline = SteadyClock::now() + patience_;
  while (!condition()) {
    if (SteadyClock::now() > deadline) return false;
    ::poll(nullptr, 0, first_process_ ? 5 : 1);
  }
  return true;
}

}  // namespace shoal::engine
