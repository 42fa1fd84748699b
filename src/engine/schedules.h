// Optional ability of an engine: jobs that the cluster's own scheduler runs at cron times. Used by
// `shoal schedule`; implemented for Marathon's companion Metronome in marathon/metronome.h.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"

namespace shoal::engine {

// How each run of a scheduled job is started: `shoal run FILE` on some host of the cluster.
struct ScheduledRun {
  std::string job_file;  // absolute path, valid on all agents
  std::string home;      // SHOAL_HOME
  std::string work_dir;  // working directory of the run
};

// State of one schedule. Times are the cluster's own text in ISO 8601; empty: never.
struct ScheduleStatus {
  std::string name;  // the job's
  std::string cron;
  std::string time_zone;
  bool enabled = true;
  std::string next;
  std::vector<std::string> active;  // ids of runs that have not ended
  int64_t successes = 0;
  int64_t failures = 0;
  std::string last_success;
  std::string last_failure;
};

// Thread-safe. All calls but Describe block, at most a minute.
class Schedules {
 public:
  virtual ~Schedules() = default;
  // The requests that Put would send, as text for the user. Contacts no server.
  virtual Result<std::string> Describe(const job::Job& job, const ScheduledRun& run) = 0;
  // Creates the schedule of job.schedule, or replaces the schedule of the same job name; true if it
  // is new. FailedPrecondition if the name belongs to an object that Shoal did not create.
  virtual Result<bool> Put(const job::Job& job, const ScheduledRun& run) = 0;
  // All schedules that Put created, sorted by name.
  virtual Result<std::vector<ScheduleStatus>> List() = 0;
  // Removes a schedule. NotFound if there is none of that name. FailedPrecondition while runs are
  // active, unless `stop` is set: then the runs are ended first.
  virtual Status Remove(const std::string& name, bool stop) = 0;
  // Starts a run immediately; returns its id.
  virtual Result<std::string> RunNow(const std::string& name) = 0;
};

}  // namespace shoal::engine
