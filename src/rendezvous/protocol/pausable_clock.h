// The time of a process that may be stopped: by SIGSTOP, by Slurm's suspend, by a laptop that
// sleeps, or because its machine has no processor for it. What it did not hear of then nobody has
// failed to say, so that time counts for no deadline.
//
// Of the coordinator (the job's time) and of link.cc (how long the other side is silent or away).
#pragma once

#include "base/clock.h"

namespace shoal::rendezvous {

class PausableClock {
 public:
  // `longest`: between two calls of Now while the process runs. More than that is lost time.
  PausableClock(const Clock* clock, Duration longest)
      : clock_(clock), longest_(longest), last_(clock->Now()) {}

  // The clock's time less what was lost. To be asked more often than every `longest`.
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

  // While it is held it does not pass: those who are waited for are stopped.
  void Hold(bool held) {
    (void)Now();
    held_ = held;
  }
  bool held() const { return held_; }

  // What was lost since this was asked last.
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
