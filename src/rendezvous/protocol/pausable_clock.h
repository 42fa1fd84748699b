// A clock that leaves out the time in which its process did not run: SIGSTOP, Slurm's suspend, a
// sleeping laptop, or no processor to run on. The other side cannot be blamed for messages that
// this process could not read, so deadlines do not count that time.
//
// Used for the job's time (coordinator/job_clock.h) and by coordinator_connection.cc.
#pragma once

#include "base/clock.h"

namespace shoal::rendezvous {

class PausableClock {
 public:
  // `longest`: the longest time between two calls of Now while the process runs. A longer gap is
  // lost time.
  PausableClock(const Clock* clock, Duration longest)
      : clock_(clock), longest_(longest), last_(clock->Now()) {}

  // The clock's time less the lost time. Call it more often than every `longest`.
  TimePoint Now() {
    const TimePoint now = clock_->Now();
    const Duration gap = now - last_;
    last_ = now;
    if (held_) {
      lost_ += gap;
    } else if (gap > longest_) {
      lost_ += gap;
      untold_ += gap;
    }
    return now - lost_;
  }

  // While held, the time stands still: the processes that are waited for are paused.
  void Hold(bool held) {
    (void)Now();
    held_ = held;
  }
  bool held() const { return held_; }

  // The time lost since the last call.
  Duration TakeLostTime() {
    const Duration lost = untold_;
    untold_ = Duration::zero();
    return lost;
  }

 private:
  const Clock* const clock_;
  const Duration longest_;
  TimePoint last_;
  Duration lost_{0};
  Duration untold_{0};
  bool held_ = false;
};

}  // namespace shoal::rendezvous
