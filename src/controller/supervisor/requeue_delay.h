// The pause before a job waits again whose tasks did not join within limits.gather.
#pragma once

#include "base/clock.h"

namespace shoal::controller {

// Doubles with each failure in a row (from 1), at most `longest`, and varies by a quarter, so that
// jobs that failed together do not meet again.
Duration RequeueDelay(int failures, Duration first, Duration longest);

}  // namespace shoal::controller
