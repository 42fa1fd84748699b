// Messages of a step's tasks to the agent, one JSON line each on srun's standard output:
//
//   2: {"task":2,"word":"started"}
//   2: {"task":2,"word":"ended","exit":-1,"signal":9,"oom":false}
//   2: {"task":2,"word":"refused","reason":"cannot start …"}
//
// and signals from the agent to the tasks on srun's standard input: "term 2", "kill 2", "usr1 0".
// Every task of the step receives all of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine::slurm {

enum class StepEventKind : uint8_t { kStarted, kEnded, kRefused };

// A message of a task.
struct StepEvent {
  StepEventKind word = StepEventKind::kStarted;
  int task = 0;  // number in the step
  TaskEnd end;   // of kEnded; kRefused uses only the reason
};

std::string EncodeStepEvent(const StepEvent& line);  // with its line feed, below 4 KiB
// Accepts a line with or without srun's label. Bounded and checked.
Result<StepEvent> DecodeStepEvent(std::string_view text);

// A signal for a task.
struct StepSignal {
  int signal = 0;
  int task = 0;
};
std::string EncodeStepSignal(const StepSignal& order);
std::optional<StepSignal> DecodeStepSignal(std::string_view text);

// "srun: error: Node failure on n[2-3]" → "n[2-3]"; empty for other lines.
std::string_view FailedNodes(std::string_view line);

}  // namespace shoal::engine::slurm
