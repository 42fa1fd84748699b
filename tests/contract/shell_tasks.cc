#include "contract/shell_tasks.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "engine/local/local_engine.h"
#include "host/usage.h"

namespace shoal::engine {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::string Script(Kind kind) {
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

}  // namespace

DesiredTask ShellTask(Kind kind, const std::string& role, int index,
                      const std::filesystem::path& work_dir) {
  DesiredTask task;
  task.role = role;
  task.index = index;
  task.work_dir = work_dir;
  task.argv = {"/bin/sh", "-c", Script(kind)};
  if (kind == Kind::kCannotStart) task.argv = {"/no/such/program"};
  return task;
}

int AliveHere(const std::string& job_id) {
  return static_cast<int>(host::ProcessesWithVariable(kJobVariable, job_id).size());
}

void LoseHere(const std::string& job_id, const std::string& role, int index) {
  const std::string prefix = role + "/" + std::to_string(index) + "/";
  for (pid_t pid : host::ProcessesWithVariable(kJobVariable, job_id)) {
    auto task = host::ReadProcessVariable(pid, kTaskVariable);
    if (task.ok() && task->starts_with(prefix)) host::KillProcess(pid, 0);
  }
}

void WriteCoordinatorFile(const std::filesystem::path& job_dir, const Endpoint& endpoint) {
  const json::object object{
      {"host", endpoint.host}, {"port", endpoint.port}, {"pid", ::getpid()}, {"started", "now"}};
  ASSERT_TRUE(WriteFileAtomically(job_dir / "coordinator.json", ToText(object)).ok());
}

bool AwaitHere(const std::function<bool()>& condition, std::chrono::seconds patience) {
  const auto deadline = SteadyClock::now() + patience;
  while (!condition()) {
    if (SteadyClock::now() > deadline) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

}  // namespace shoal::engine
