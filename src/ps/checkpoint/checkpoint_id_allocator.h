// Which number the next checkpoint gets, and whether the directory is this job's alone. Server 0
// asks when a checkpoint begins (docs/design/checkpoint.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <utility>

#include "base/status.h"

namespace shoal::ps {

// The numbers of the checkpoints of one job; used by server 0 alone. Not thread-safe.
class CheckpointIdAllocator {
 public:
  explicit CheckpointIdAllocator(std::filesystem::path root) : root_(std::move(root)) {}

  // From now on only this job may commit checkpoints there.
  Status Guard();
  // The next one: above all that are there, and those before. FailedPrecondition: since Guard()
  // another job has committed one, whose rows this job's would be mixed with.
  Result<int64_t> NextId(int64_t restored);
  // The last that was begun; with copies another server may have begun it.
  int64_t last() const { return last_; }
  void SetLast(int64_t last) { last_ = last; }

 private:
  const std::filesystem::path root_;
  bool guarded_ = false;
  int64_t found_ = -1;  // the newest that was there at first
  int64_t last_ = -1;
  std::set<int64_t> begun_;  // here, and still there
};

}  // namespace shoal::ps
