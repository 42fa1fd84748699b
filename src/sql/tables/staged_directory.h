// A directory that is filled beside its target and takes the target's name in one step.
#pragma once

#include <filesystem>
#include <utility>

#include "base/status.h"

namespace shoal::sql {

// Movable; not thread-safe. Removed when this ends, unless it was moved to its target.
class StagedDirectory {
 public:
  // Makes the target's parents, and a directory `.NAME.XXXXXX` of this user beside the target.
  static Result<StagedDirectory> Create(const std::filesystem::path& target);
  StagedDirectory(StagedDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  StagedDirectory& operator=(StagedDirectory&&) = delete;
  ~StagedDirectory();

  const std::filesystem::path& path() const { return path_; }

  // The directory takes the target's name, with the mode that the umask says. `replace`: the target
  // is there, and is removed; else AlreadyExists if it is.
  Status MoveTo(const std::filesystem::path& target, bool replace);

 private:
  explicit StagedDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// Moves a directory as StagedDirectory::MoveTo does; with `replace` the old target is then at
// `from`.
Status MoveDirectory(const std::filesystem::path& from, const std::filesystem::path& target,
                     bool replace);

}  // namespace shoal::sql
