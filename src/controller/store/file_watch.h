// Notifications of file changes in a directory (inotify), in place of polling. Used by the store
// (commits of other processes) and the log store (followed logs).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace shoal::controller {

// Watches on a thread of its own, which ends with the object.
class FileWatch {
 public:
  // Starts watching `directory`, which must exist. `name`: the only file of interest, which may
  // appear and disappear; empty: all files. `on_change` is called on the watching thread at least
  // once after every change, and possibly without one.
  static Result<std::unique_ptr<FileWatch>> Start(const std::filesystem::path& directory,
                                                  std::string name,
                                                  std::function<void()> on_change);
  virtual ~FileWatch() = default;
};

// The inotify descriptor alone, for an event loop: readable after a change. ConsumeChanges empties
// it and returns true if a change concerned the file `name`, or any file if `name` is empty.
Result<UniqueFd> OpenDirectoryWatch(const std::filesystem::path& directory);
bool ConsumeChanges(int fd, const std::string& name);

}  // namespace shoal::controller
