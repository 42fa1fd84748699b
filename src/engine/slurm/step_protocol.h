// What a step's task tells its agent, through the output of srun: one line of JSON each.
//
//   2: {"task":2,"word":"started"}
//   2: {"task":2,"word":"ended","exit":-1,"signal":9,"oom":false}
//   2: {"task":2,"word":"refused","reason":"cannot start …"}
//
// And what the agent tells it, through srun's input: "term 2", "kill 2", "usr1 0"; everyone hears
// all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine::slurm {

enum class StepEventKind : uint8_t { kStarted, kEnded, kRefused };

struct StepEvent {
  StepEventKind word = StepEventKind::kStarted;
  int task = 0;  // of the step
  TaskEnd end;   // kEnded; of kRefused the reason
};

std::string EncodeStepEvent(const StepEvent& line);  // with its line feed, below 4 KiB
// With or without srun's label. Bounded, checked.
Result<StepEvent> DecodeStepEvent(std::string_view text);

struct StepSignal {
  int signal = 0;
  int task = 0;
};
std::string EncodeStepSignal(const StepSignal& order);
std::optional<StepSignal> DecodeStepSignal(std::string_view text);

// "srun: error: Node failure on n[2-3]" → "n[2-3]"; empty for other lines.
std::string_view FailedNodes(std::string_view line);

}  // namespace shoal::engine::slurm
