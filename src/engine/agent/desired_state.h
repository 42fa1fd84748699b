// What an engine and those who hold its tasks elsewhere (slurm/agent.cc, marathon/holder.cc) write
// for each other into the job's directory, which both see (docs/formats/slurm.md):
//
//   engine/orders.json   engine → holders: the tasks that are to exist; replaced whole
//   a file of lines      holder → engine: what became of them; appended, a line each
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

struct AgentTask {
  DesiredTask task;
  int round = 0;        // grows when it is named again after it was not
  int per_cell = 1;     // so many of its role share a cell
  bool beside = false;  // with the tasks of other roles in it
  int component = 0;    // of a heterogeneous allocation
};

struct DesiredState {
  std::string job_id;
  int64_t number = 0;                       // of this Apply or Stop
  bool stop = false;                        // everything is to end
  std::chrono::milliseconds grace{10'000};  // between SIGTERM and SIGKILL of what is not named
  RestartRules restart;
  std::string program;  // shoal
  bool requeue = true;  // Slurm may start the job again
  std::vector<AgentTask> tasks;
};

std::string EncodeDesiredState(const DesiredState& orders);
// Checks everything; InvalidArgument names the field. At most 100,000 tasks.
Result<DesiredState> DecodeDesiredState(std::string_view text);

enum class EventKind : uint8_t {
  kTask,                // `event`
  kAgentStarted,        // an agent runs now
  kTimeLimit,           // the allocation's time is nearly over: the tasks are being told to save
  kRequeue,             // … they have, and Slurm was asked to start the job again
  kAgentExited,         // nothing runs any more, the agent ends
  kNote,                // `event.end.reason`, for people
  kNeedsNewAllocation,  // the job is to go on in another allocation
};

// One line of the agent's.
struct AgentEvent {
  EventKind sign = EventKind::kTask;
  TaskEvent event;
  int64_t order = 0;  // the orders that were in force
  std::string node;   // of a task that runs; of kAgentStarted the agent's, if the allocation has it
};

std::string EncodeAgentEvent(const AgentEvent& line);  // with its line feed
// Without the line feed. Bounded, checked.
Result<AgentEvent> DecodeAgentEvent(std::string_view text);

// Reads what was appended since the last call, whole lines only.
class AgentEventReader {
 public:
  explicit AgentEventReader(std::filesystem::path path) : path_(std::move(path)) {}
  // Empty if there is nothing new or no file. A damaged line is an error once and then passed over.
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
