// Jobs that a cluster runs again and again at their times: what an engine beside which a scheduler
// stands can do. Used by `shoal schedule`; Marathon's is marathon/metronome.h.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"

namespace shoal::engine {

// How a scheduled job is run each time: `shoal run FILE`, somewhere in the cluster.
struct ScheduledRun {
  std::string job_file;  // absolute; as all agents see it
  std::string home;      // SHOAL_HOME
  std::string work_dir;  // where it is started
};

// One schedule as the cluster tells it. Times are the cluster's own text, ISO 8601; empty: never.
struct ScheduleStatus {
  std::string name;  // the job's
  std::string cron;
  std::string time_zone;
  bool enabled = true;
  std::string next;
  std::vector<std::string> active;  // ids of runs that are not over
  int64_t successes = 0;
  int64_t failures = 0;
  std::string last_success;
  std::string last_failure;
};

// Thread-safe. All calls but Describe block, at most a minute.
class Schedules {
 public:
  virtual ~Schedules() = default;
  // What Put would send, for people. Asks nobody.
  virtual Result<std::string> Describe(const job::Job& job, const ScheduledRun& run) = 0;
  // Makes the schedule of job.schedule, or replaces that of the job's name; true if it is new.
  // FailedPrecondition if something of another kind has its place.
  virtual Result<bool> Put(const job::Job& job, const ScheduledRun& run) = 0;
  // Those that Put made, in the order of their names.
  virtual Result<std::vector<ScheduleStatus>> List() = 0;
  // NotFound if there is none of that name. FailedPrecondition while runs of it are not over; with
  // `stop` they are told to end first, and this returns when they have.
  virtual Status Remove(const std::string& name, bool stop) = 0;
  // Starts a run now, whatever the time; its id.
  virtual Result<std::string> RunNow(const std::string& name) = 0;
};

}  // namespace shoal::engine
