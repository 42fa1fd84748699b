// Files through which an engine and its remote agents (slurm/agent.cc, marathon/executor.cc)
// communicate in the job's directory, which both see (docs/formats/slurm.md):
//
//   engine/orders.json   engine → agents: the desired state; always replaced as a whole
//   an event log         agent → engine: what happened to the tasks; one JSON line per event
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

// A task of the desired state, with its placement in a Slurm allocation (slurm/cell_placement.h).
struct AgentTask {
  DesiredTask task;
  int revision = 0;     // grows when the task is listed again after it was removed
  int per_cell = 1;     // number of tasks of this role in a cell
  bool beside = false;  // shares its cell with tasks of other roles
  int component = 0;    // component of a heterogeneous allocation
};

// The desired state of one job for its agents. Each Apply and Stop writes a new one with a larger
// revision; agents compare it with the tasks they run. Plain value.
struct DesiredState {
  std::string job_id;
  int64_t revision = 0;                     // grows with each Apply and Stop
  bool stop = false;                        // all tasks must end
  std::chrono::milliseconds grace{10'000};  // between SIGTERM and SIGKILL of removed tasks
  RestartRules restart;
  std::string program;  // path of shoal on the agents' hosts
  bool requeue = true;  // Slurm may requeue the job
  std::vector<AgentTask> tasks;
};

std::string EncodeDesiredState(const DesiredState& orders);
// Checks everything; InvalidArgument names the field. At most 100,000 tasks.
Result<DesiredState> DecodeDesiredState(std::string_view text);

enum class EventKind : uint8_t {
  kTask,                // `event` holds a change of a task
  kAgentStarted,        // an agent began to run
  kTimeLimit,           // the allocation's time limit is near: the tasks were told to save
  kRequeue,             // the tasks have saved, and Slurm was asked to requeue the job
  kAgentExited,         // no task runs any more, and the agent exits
  kNote,                // `event.end.reason` holds a message for the user
  kNeedsNewAllocation,  // the job must continue in another allocation
};

// One line of an agent's event log.
struct AgentEvent {
  EventKind kind = EventKind::kTask;
  TaskEvent event;
  // Revision in force: of the desired state (Slurm) or of the slot's task (Marathon).
  int64_t revision = 0;
  // Node of a running task; of kAgentStarted the agent's node if it is in the allocation.
  std::string node;
};

std::string EncodeAgentEvent(const AgentEvent& line);  // with its line feed
// Without the line feed. Bounded, checked.
Result<AgentEvent> DecodeAgentEvent(std::string_view text);

// Reads an event log incrementally: each call returns the complete lines that were appended since
// the last one. Not thread-safe.
class AgentEventReader {
 public:
  explicit AgentEventReader(std::filesystem::path path) : path_(std::move(path)) {}
  // Empty if there is nothing new or no file. A damaged line is reported as an error once and then
  // skipped.
  Result<std::vector<AgentEvent>> Read();

 private:
  const std::filesystem::path path_;
  int64_t offset_ = 0;
  std::string rest_;
};

std::filesystem::path DesiredStatePath(const std::string& job_dir);
Status WriteDesiredState(const std::string& job_dir, const DesiredState& orders);
// NotFound if there are none.
Result<DesiredState> ReadDesiredState(const std::string& job_dir);

}  // namespace shoal::engine
