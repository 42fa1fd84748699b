// Gathers what happens in a run and stores it in as few commits as possible: one when the job
// runs, then at most one a second, and one synced at the end. Used by job_run.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/store/job_record.h"
#include "controller/store/store.h"
#include "net/event_loop.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::controller {

// Belongs to the loop's thread; all pointers outlive it.
class EventBatcher {
 public:
  EventBatcher(Store* store, const Clock* clock, net::Loop* loop, std::string id);
  ~EventBatcher();
  EventBatcher(const EventBatcher&) = delete;
  EventBatcher& operator=(const EventBatcher&) = delete;

  // After somebody else (the queue's decision) changed the job in the store.
  void Reload();
  void AddState(JobState state, const std::string& why);
  // Why it is in the state that it is in; empty: for no reason any more. Others see it soon.
  void SetReason(const std::string& why);
  void AddNote(const std::string& text);
  // Keeps what is worth keeping of the coordinator's word: states, tasks, results, stalls.
  void AddEvent(const rendezvous::JobEvent& event);
  // The tasks of a verdict that was found in a file.
  void AddVerdict(const rendezvous::Verdict& verdict);
  // Stores all of it and the end, or that it is suspended, synced. If the store fails that is
  // logged, `record` still says how it ended, and FlushRest tries again.
  void End(JobState state, const std::string& reason);
  // After End: calls `done` at once if nothing is left to store. Otherwise it tries again every
  // 100 ms, and calls `done` with the result when that succeeds, after 10 s of errors, or after
  // GiveUp. At most one call at a time.
  void FlushRest(std::function<void(const Status&)> done);
  void GiveUp() { give_up_ = true; }

  // The job as far as it is known here, stored or not.
  const JobRecord& record() const { return record_; }

 private:
  void Add(Event event);
  void FlushSoon();
  Status Flush(Durability durability);
  void RetryFlush(TimePoint until, std::function<void(const Status&)> done);

  Store* const store_;
  const Clock* const clock_;
  net::Loop* const loop_;
  JobRecord record_;
  std::vector<Event> pending_;
  net::Loop::Id timer_ = 0;
  net::Loop::Id retry_timer_ = 0;
  bool give_up_ = false;
};

}  // namespace shoal::controller
