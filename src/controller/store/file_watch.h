// The kernel's word (inotify) that files of a directory change, so that nobody has to look again
// and again. Used by the store (commits of other processes) and the log store (followed logs).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace shoal::controller {

// Calls back from a thread of its own.
class FileWatch {
 public:
  // `directory` must exist. `name`: the one file of interest, which may come and go; empty: all.
  // `on_change` may be called without need, and at least once after every change.
  static Result<std::unique_ptr<FileWatch>> Start(const std::filesystem::path& directory,
                                                  std::string name,
                                                  std::function<void()> on_change);
  virtual ~FileWatch() = default;
};

// The descriptor alone, for an event loop: readable after a change; ConsumeChanges empties it and
// says whether one of them was of interest.
Result<UniqueFd> OpenDirectoryWatch(const std::filesystem::path& directory);
bool ConsumeChanges(int fd, const std::string& name);

}  // namespace shoal::controller
