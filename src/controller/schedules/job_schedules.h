// Starts the runs of scheduled jobs at their times. A server owns one beside its supervisor.
//
// All state is in the schedules' records. The id of a run follows from its time, so that a run is
// not started twice, whatever dies in between and whichever server leads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "controller/schedules/schedule_record.h"
#include "controller/store/store.h"

namespace shoal::controller {

// All pointers must outlive the schedules.
struct JobSchedulesOptions {
  Store* store = nullptr;
  const Clock* clock = RealClock::Get();
  // Submits a run, a job or a group, with this id; with `after` it waits for the end of those.
  // AlreadyExists if an earlier server has. Unavailable, ResourceExhausted and Aborted are tried
  // again; other errors are a failed run.
  std::function<Status(const ScheduleRecord& schedule, const std::string& id,
                       const std::vector<std::string>& after)>
      start;
  // Lets a run, a job or a group, save and end.
  std::function<void(const std::string& id, const std::string& reason)> stop;
  Duration tick = std::chrono::seconds(1);
};

// Thread-safe.
class JobSchedules {
 public:
  // Decides about times that have passed, and begins a thread that goes on. `run`: false for tests,
  // which call Tick.
  static Result<std::unique_ptr<JobSchedules>> Start(JobSchedulesOptions options, bool run = true);
  ~JobSchedules();
  JobSchedules(const JobSchedules&) = delete;
  JobSchedules& operator=(const JobSchedules&) = delete;

  // Adds the schedule, or replaces the one of the same team and name, whose counts stay. Times
  // before now have no run. True if it is new. InvalidArgument if it has no times.
  Result<bool> Put(ScheduleRecord schedule);
  // Removes it; with `stop` its unfinished runs are stopped, else they go on. Returns what was
  // removed. NotFound.
  Result<ScheduleRecord> Remove(const std::string& team, const std::string& name, bool stop);
  // Starts a run now, whatever its times and concurrency; returns the id.
  Result<std::string> RunNow(const std::string& team, const std::string& name);
  Result<ScheduleRecord> Get(const std::string& team, const std::string& name);
  // All, by team and name. Blocks on the store.
  Result<std::vector<ScheduleRecord>> List();

  // Decides about all schedules at the clock's present time. One at a time.
  void Tick();

 private:
  explicit JobSchedules(JobSchedulesOptions options) : options_(std::move(options)) {}

  void Loop();
  void LookAtAll() REQUIRES(work_);
  void LookAt(ScheduleRecord* schedule) REQUIRES(work_);
  Status TickOne(ScheduleRecord* schedule, bool* changed);
  void CountEnded(ScheduleRecord* schedule, bool* changed);
  Status StartOne(ScheduleRecord* schedule, const std::string& id,
                  const std::vector<std::string>& after);
  Status CheckCount(const std::string& team);
  Status Store(const ScheduleRecord& schedule);

  const JobSchedulesOptions options_;
  Mutex work_;  // one decision or change at a time
  // The next time of each schedule, and when all were read.
  std::map<std::string, WallTime> next_ GUARDED_BY(work_);
  WallTime looked_ GUARDED_BY(work_){};
  Mutex mu_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace shoal::controller
