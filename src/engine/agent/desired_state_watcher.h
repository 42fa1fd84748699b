// Input of the remote agents (slurm/agent.cc, marathon/executor.cc): signals of the cluster manager
// that started them, and new desired states of the engine.
#pragma once

#include <poll.h>

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/agent/desired_state.h"

namespace shoal::engine {

// Watches the desired state by inotify and receives signals by signalfd. Not thread-safe.
class DesiredStateWatcher {
 public:
  DesiredStateWatcher() = default;  // receives nothing
  // Blocks the signals in the calling thread and the threads it starts later; ReadSignals returns
  // them from now on.
  static Result<DesiredStateWatcher> Make(const std::string& job_dir,
                                          std::initializer_list<int> signals);

  // Returns when a signal or a change arrives, when one of `polls` is ready, or after `time`, but
  // after one second at the latest: inotify does not report changes that other hosts make on a
  // network file system. The caller's entries stay the first ones of `polls`.
  void Wait(std::vector<pollfd>* polls, std::optional<Duration> time) const;
  std::vector<int> ReadSignals() const;
  // The desired state if its revision differs from `number`. A file that cannot be read is logged
  // and skipped.
  std::optional<DesiredState> PollDesiredState(int64_t number);

 private:
  std::string job_dir_;
  UniqueFd signals_;
  UniqueFd changes_;
  std::filesystem::file_time_type time_{};
};

}  // namespace shoal::engine
