// Whether the process that owned a job still lives.
#pragma once

#include <filesystem>

#include "base/file.h"
#include "base/status.h"
#include "controller/types.h"

namespace shoal::controller {

// Of the calling process.
Result<ProcessIdentity> CurrentProcess();
// False once it is gone, was of an earlier boot, or its pid belongs to another process by now.
// A zombie counts as gone.
bool IsAlive(const ProcessIdentity& process);

// Says to other machines that share the state home that a process lives: a file there is locked
// (flock; between hosts on NFS from version 4 and the like). Destroying it takes that back.
class AliveMark {
 public:
  static Result<AliveMark> Make(const std::filesystem::path& root, const ProcessIdentity& process);
  AliveMark(AliveMark&&) = default;
  AliveMark& operator=(AliveMark&&) = delete;
  ~AliveMark();

 private:
  AliveMark(std::filesystem::path path, UniqueFd file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  UniqueFd file_;
};
// What a process that was killed has left of it.
void ForgetMark(const std::filesystem::path& root, const ProcessIdentity& process);
// Whether a process of another machine, or boot, has said so and lives.
bool LivesElsewhere(const std::filesystem::path& root, const ProcessIdentity& process);

}  // namespace shoal::controller
