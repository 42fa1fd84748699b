// Builds the environment of a task's program from its layers. Used by attempt.cc for programs and
// readiness checks.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/launcher/task_directories.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {

// Layers are added from the weakest to the strongest; a later value replaces an earlier one:
//
//   Inherit          the launcher's own environment, from the engine or the image
//   AddDefaults      defaults that the job file may replace: TMPDIR
//   AddVariables     from the coordinator: the framework's variables and the job file's `env`;
//                    once more for the variables of one of several processes (its rank)
//   AddAttempt       what only the launcher knows: SHOAL_SCRATCH, SHOAL_OUTPUT, SHOAL_CLUSTER, …
//
// Not thread-safe.
class TaskEnvironment {
 public:
  explicit TaskEnvironment(const AttemptPaths& paths) : paths_(paths) {}

  // `environment`: "NAME=value" entries, ended by null. Leaves out variables of the engine's own
  // objects.
  TaskEnvironment& Inherit(const char* const* environment);
  TaskEnvironment& AddDefaults();
  // kOutputMark in a value becomes the attempt's output directory.
  TaskEnvironment& AddVariables(const std::vector<std::pair<std::string, std::string>>& variables);
  TaskEnvironment& AddAttempt();
  // "NAME=value", in the order of names.
  std::vector<std::string> Build() const;

 private:
  void SetHome();

  const AttemptPaths paths_;
  std::map<std::string, std::string, std::less<>> variables_;
};

// All layers. `process`: the variables of one of several processes, on top of StartMessage::env.
std::vector<std::string> BuildTaskEnvironment(
    const StartMessage& start, const std::vector<std::pair<std::string, std::string>>& process,
    const AttemptPaths& paths);

}  // namespace shoal::rendezvous
