// When a job is expected to start, and what would become of a job that is not submitted yet: the
// scheduler's copy is run on with the expected ends of the running jobs.
#pragma once

#include <string>
#include <vector>

#include "queue/core/scheduler.h"

namespace shoal::queue {

struct Forecast {
  Millis at = kForever;   // of the start; kForever: unknown, since run times are
  double confidence = 1;  // the least of the run times on which it depends; 1: all are limits
};

// The start of a waiting job, if no further job comes and every running job ends when it is
// expected to; one that has run longer than expected, after as long again. At most `steps` ends are
// looked at. Pure. O(jobs + steps · decision).
Forecast ForecastStart(const Scheduler& scheduler, JobRef job, int steps = 2000);

// "expected to start in 12 min at the latest", "expected to start in about 12 min (80 % sure)";
// empty if unknown.
std::string ForecastText(const Forecast& forecast, Millis now);

// What would become of a job now.
struct SubmissionTrial {
  bool starts = false;
  bool refused = false;              // it could never start
  bool preempts = false;             // others would be preempted or shrunk for it
  std::string flavor;                // on which it would start
  int32_t size = 0;                  // and with how many tasks of the elastic role
  std::string reason;                // why it would wait or be refused
  std::vector<std::string> changes;  // each would start it now (why.h)
  Forecast forecast;
};

// Errors are those of Scheduler::Submit. Pure.
Result<SubmissionTrial> TrySubmission(const Scheduler& scheduler, const JobSpec& spec, Millis now);

}  // namespace shoal::queue
