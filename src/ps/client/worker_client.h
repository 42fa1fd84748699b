// A worker's requests to the leader: clocks, barriers, progress, and leaving.
//
// Owned by ClientCore, which outlives it. Thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <string>

#include "base/mutex.h"
#include "ps/wire/frame.h"

namespace shoal::ps {

class ClientCore;

class WorkerClient {
 public:
  explicit WorkerClient(ClientCore* core) : core_(core) {}

  // As Client's functions of these names.
  Status Clock(uint64_t n, TimePoint deadline);
  Status Barrier(const std::string& name, TimePoint deadline);
  Status SetProgress(std::string bytes);
  Status Leave(TimePoint deadline);

  // The last clock that this worker has reported.
  uint64_t clock() const { return clock_; }
  // The last progress that was set.
  std::string progress();

 private:
  // Takes this worker out of the barrier that it entered with request `id`. OK: it had been let
  // through. DeadlineExceeded, naming the late workers: it is out, or will be before it enters
  // again.
  Status LeaveBarrier(const std::string& name, uint64_t id, TimePoint deadline);
  // Adds the names of the late workers to a DeadlineExceeded, if the leader answers in time.
  Status WithLateWorkers(const Status& status, FrameType type, uint64_t argument, std::string body);

  ClientCore* const core_;
  std::atomic<uint64_t> clock_{0};
  Mutex barriers_mu_;
  // Requests whose barrier may not know yet that this worker has given it up, by name; guarded by
  // barriers_mu_.
  std::map<std::string, uint64_t> left_barriers_;
  Mutex progress_mu_;
  std::string progress_ GUARDED_BY(progress_mu_);
};

}  // namespace shoal::ps
