// How those who hold a job's tasks elsewhere (slurm/agent.cc, marathon/holder.cc) hear: signals of
// the system that started them, and orders of the engine.
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

// Not thread-safe.
class DesiredStateWatcher {
 public:
  DesiredStateWatcher() = default;  // hears nothing
  // From here on the signals are read, not obeyed; of the calling thread and those it starts.
  static Result<DesiredStateWatcher> Make(const std::string& job_dir,
                                          std::initializer_list<int> signals);

  // Until something is heard, one of `polls` is ready (the first of them are still the caller's) or
  // the time is over: at most a second, since the kernel does not tell of changes that other hosts
  // make on a network file system.
  void Wait(std::vector<pollfd>* polls, std::optional<Duration> time) const;
  std::vector<int> ReadSignals() const;
  // DesiredState whose number is another one. One that cannot be read is logged.
  std::optional<DesiredState> PollDesiredState(int64_t number);

 private:
  std::string job_dir_;
  UniqueFd signals_;
  UniqueFd changes_;
  std::filesystem::file_time_type time_{};
};

}  // namespace shoal::engine
