// The queues of a supervisor: the policy of its file, which may be replaced while it runs, the
// modes that operators have set, which the store keeps, and the report that `shoal queue` shows.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "controller/admission/queue_modes.h"
#include "controller/store/job_record.h"
#include "controller/store/store.h"
#include "controller/threads/executor.h"
#include "job/spec/job.h"
#include "net/event_loop.h"
#include "queue/policy/policy.h"

namespace shoal::queue {
struct QueueReport;
struct SubmissionTrial;
struct Viewer;
}  // namespace shoal::queue

namespace shoal::controller {

class JobAdmitter;

// All pointers must outlive the manager.
struct QueueManagerOptions {
  net::Loop* loop = nullptr;  // of the admitter
  Store* store = nullptr;
  const Clock* clock = RealClock::Get();
  Executor* store_threads = nullptr;
};

// Thread-safe, except for what is said otherwise. Callbacks are called once, on the loop's thread.
class QueueManager {
 public:
  using Done = std::function<void(const Status&)>;

  explicit QueueManager(QueueManagerOptions options) : options_(options) {}

  // Before anything else: the policy of the file, if there is one, and the modes in the store.
  // Blocks on the store.
  Status Load(std::optional<queue::Policy> file);
  // On the loop's thread, or before it runs. nullptr: the supervisor ends.
  void Attach(JobAdmitter* admitter) { admitter_ = admitter; }

  // Learns run times from the latest ended jobs of the store, in the background.
  void LearnPast();

  // The policy of the file; none: one queue, first in, first out.
  std::optional<queue::Policy> policy() const;
  QueueModes modes() const;
  // InvalidArgument for a queue that the policy does not have.
  Status CheckQueue(const job::Job& job) const;

  // Puts another policy in force. FailedPrecondition, naming the jobs, if it would strand some, or
  // if there is no policy file; the policy in force then stays.
  void Replace(queue::Policy policy, Done done);
  // Holds, drains or resumes a queue, for as long as the store exists. NotFound;
  // FailedPrecondition for a queue that cannot be resumed, since the file or the queue above it
  // holds it. `by`: for the record.
  void SetMode(const std::string& queue, queue::QueueMode mode, const std::string& by, Done done);
  // What would become of a job of the user, if it were submitted now. `done` is called once, on
  // this or another thread.
  void Try(const JobRecord& record, const job::Job& job,
           std::function<void(const Result<queue::SubmissionTrial>&)> done) const;
  // What the viewer may see of the queues.
  void Report(const queue::Viewer& viewer,
              std::function<void(const queue::QueueReport&)> done) const;

 private:
  void Apply(queue::Policy policy, const Status& checked, const Done& done);
  Status CheckMode(const std::string& queue, queue::QueueMode mode) const;

  const QueueManagerOptions options_;
  JobAdmitter* admitter_ = nullptr;  // of the loop's thread
  mutable Mutex mu_;
  std::optional<queue::Policy> file_ GUARDED_BY(mu_);
  QueueModes modes_ GUARDED_BY(mu_);
};

// FailedPrecondition, naming the jobs, if the queue that one of them names is a queue of `old` and
// takes no jobs under `next`.
Status CheckStranded(const std::vector<JobRecord>& jobs, const queue::Policy& old,
                     const queue::Policy& next);

}  // namespace shoal::controller
