// Whether a server can store what it is asked to: a write to the store, and room on the disk of its
// state directory. Used by /readyz and by submissions.
#pragma once

#include <filesystem>
#include <optional>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "controller/store/records.h"

namespace shoal::api {

// Bytes that must be free on the state directory's disk before a job is accepted: running jobs need
// them to store their ends, journals and logs.
inline constexpr int64_t kFreeForNewJobs = int64_t{64} << 20;

// Thread-safe.
class Readiness {
 public:
  Readiness(controller::Records* records, std::filesystem::path state, const Clock* clock)
      : records_(records), state_(std::move(state)), clock_(clock) {}

  // Writes a record in a synced commit, at most once in 5 s; else returns the last result. The
  // error of the store otherwise.
  Status CheckStore();
  // ResourceExhausted, with the numbers, if less than kFreeForNewJobs is free.
  Status CheckDisk() const;

 private:
  controller::Records* const records_;
  const std::filesystem::path state_;
  const Clock* const clock_;
  Mutex mu_;
  std::optional<TimePoint> tried_ GUARDED_BY(mu_);  // as is the next
  Status last_;
};

}  // namespace shoal::api
