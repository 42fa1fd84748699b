// Waits until files of some directories have changed, or until somebody calls: for engines that
// read what is written on other hosts. Used by slurm/ and marathon/.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace shoal::engine {

// Thread-safe; one thread waits.
class DirectoryWatcher {
 public:
  // `owner`: "the Slurm engine", for the error.
  static Result<DirectoryWatcher> Make(const std::string& owner);

  // Files made in it or written from now on end a wait, where the kernel tells: not those that
  // other hosts write on a network file system.
  void Add(const std::string& directory) const;
  void Wake() const;
  // Nothing: until then for ever.
  void Wait(std::optional<std::chrono::milliseconds> timeout) const;

 private:
  DirectoryWatcher(UniqueFd wake, UniqueFd changes)
      : wake_(std::move(wake)), changes_(std::move(changes)) {}
  UniqueFd wake_;
  UniqueFd changes_;
};

}  // namespace shoal::engine
