// Maintenance windows at one time. Used by round.cc and explain.cc.
#pragma once

#include "queue/core/scheduler_state.h"

namespace shoal::queue {

// When a flavor is closed, or will be next.
struct WindowView {
  bool open = true;
  Millis until{0};         // end of the window that closes it now
  Millis next = kForever;  // beginning of the next window

  // True if a job with this run time (0: unknown) may start. A job of unknown run time may; it is
  // preempted when the window begins.
  bool Admits(Millis now, Millis run_time) const {
    return open && (run_time == Millis(0) || next == kForever || now + run_time <= next);
  }
};

WindowView ViewWindows(const Policy& policy, const std::string& flavor, Millis now);

}  // namespace shoal::queue
