// Collects the events of a run and stores them in few commits: one when the job starts running,
// then at most one per second, and a synced one at the end. Used by job_run.cc.
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

// Must be used on the loop's thread. All pointers must outlive it.
class EventBatcher {
 public:
  EventBatcher(Store* store, const Clock* clock, net::Loop* loop, std::string id);
  ~EventBatcher();
  EventBatcher(const EventBatcher&) = delete;
  EventBatcher& operator=(const EventBatcher&) = delete;

  // Reads the record again after another writer (the queue's decision) changed it.
  void Reload();
  void AddState(JobState state, const std::string& why);
  // Sets the reason of the current state and stores it soon; empty: no reason.
  void SetReason(const std::string& why);
  void AddNote(const std::string& text);
  // Adds an event of the coordinator if it is recorded: states, tasks, results, stalls.
  void AddEvent(const rendezvous::JobEvent& event);
  // Adds the tasks of a verdict that was read from a file.
  void AddVerdict(const rendezvous::Verdict& verdict);
  // Stores all pending events and the end (or the suspension) in a synced commit. If the store
  // fails, the error is logged, `record` still shows the end, and FlushRest tries again.
  void End(JobState state, const std::string& reason);
  // To be called after End, once at a time. Calls `done` at once if nothing is left to store.
  // Otherwise retries every 100 ms and calls `done` with the result on success, after 10 s of
  // errors, or after GiveUp.
  void FlushRest(std::function<void(const Status&)> done);
  void GiveUp() { give_up_ = true; }

  // The job's record with all added events, stored or not.
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
