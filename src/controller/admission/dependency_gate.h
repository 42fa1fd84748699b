// Holds back the pending jobs of a supervisor whose `after` is not met yet, before they wait for
// their admission. A job whose condition can no longer be met is cancelled.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "controller/admission/dependencies.h"
#include "controller/admission/job_admitter.h"
#include "controller/store/job_record.h"
#include "controller/store/store.h"
#include "controller/threads/executor.h"
#include "controller/threads/loop_task_group.h"
#include "net/event_loop.h"

namespace shoal::controller {

// All pointers must outlive the gate.
struct DependencyGateOptions {
  net::Loop* loop = nullptr;
  Store* store = nullptr;
  const Clock* clock = RealClock::Get();
  ProcessIdentity self;  // owner of the jobs
  Executor* store_threads = nullptr;
  // Interval at which some jobs are compared with the store, for changes by other processes.
  Duration tick = std::chrono::seconds(5);
};

// Must be used on the loop's thread, and destroyed there or when the loop has ended.
class DependencyGate {
 public:
  explicit DependencyGate(DependencyGateOptions options);
  ~DependencyGate();

  // Whether the job has conditions that were not met before: one that has run once has none.
  static bool Holds(const JobRecord& record, const job::Job& job);

  // Ends with one call of `go`, with the record as stored then and the calls, of
  // calls.on_taken (the job is suspended, ended or taken over, or was cancelled here), or with
  // Release. calls.on_wait is called for each reason.
  using Go = std::function<void(const JobRecord&, const job::Job&, AdmissionCallbacks)>;
  void Wait(const JobRecord& record, const job::Job& job, AdmissionCallbacks calls, Go go);
  // The job was changed in the store. Unknown ids are ignored, here and below.
  void Reread(const std::string& id);
  void Release(const std::string& id);
  // Why the job waits here; nullopt if it does not.
  std::optional<WhyWaits> Why(const std::string& id) const;
  // A job or a group has ended, or a job was suspended.
  void OnEnd(const std::string& id);

 private:
  struct Entry;
  struct Outcome;

  static Outcome Ask(const DependencyGateOptions& options, const std::string& id,
                     const std::string& told);
  void Check(const std::string& id);
  void OnOutcome(const std::string& id, int64_t serial, const Outcome& outcome);
  void Tick();

  const DependencyGateOptions options_;
  LoopTaskGroup tasks_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;
  std::map<std::string, std::set<std::string>> waiters_;  // by what they wait for
  std::string ticked_;                                    // last id of the last tick
  int64_t serial_ = 0;                                    // tells entries of one id apart
  net::Loop::Id tick_ = 0;                                // 0: no job waits
};

}  // namespace shoal::controller
