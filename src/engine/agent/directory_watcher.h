// Waits for changes in directories (inotify) or for a wake-up call. Used by the engines that read
// agents' event logs: slurm/ and marathon/.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace shoal::engine {

// Thread-safe. One thread calls Wait, any thread the other methods.
class DirectoryWatcher {
 public:
  // `owner` is the subject of error messages: "the Slurm engine".
  static Result<DirectoryWatcher> Make(const std::string& owner);

  // From now on a file that is created or written in the directory ends a wait. Changes that other
  // hosts make on a network file system are not noticed: callers also need a timeout.
  void Add(const std::string& directory) const;
  void Wake() const;
  // Without `timeout`, waits indefinitely.
  void Wait(std::optional<std::chrono::milliseconds> timeout) const;

 private:
  DirectoryWatcher(UniqueFd wake, UniqueFd changes)
      : wake_(std::move(wake)), changes_(std::move(changes)) {}
  UniqueFd wake_;
  UniqueFd changes_;
};

}  // namespace shoal::engine
