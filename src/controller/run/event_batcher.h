// Collects the events of a run and stores them in few commits: one when the job starts running,
// then at most one per second, and a synced one at the end. Used by job_run.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "controller/store/coordinator_events.h"
#include "controller/store/job_record.h"
#include "controller/store/store.h"
#include "controller/threads/executor.h"
#include "controller/threads/loop_task_group.h"
#include "net/event_loop.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::controller {

// All pointers must outlive the batcher; `executor` may be null: then the calling thread commits.
struct EventBatcherOptions {
  Store* store = nullptr;
  const Clock* clock = nullptr;
  net::Loop* loop = nullptr;
  Executor* executor = nullptr;
  bool patient = false;  // FlushRest retries until it succeeds, as for a disk that is full for long
};

// Must be used on the loop's thread. One commit at a time; events added during a commit are part of
// the next one. A failed commit is repeated with the next events.
class EventBatcher {
 public:
  // `record`: as stored. `ended`: ends that are stored already.
  EventBatcher(EventBatcherOptions options, JobRecord record, EndedAttempts ended = {});
  ~EventBatcher();
  EventBatcher(const EventBatcher&) = delete;
  EventBatcher& operator=(const EventBatcher&) = delete;

  // Replaces the record after another writer (the queue's decision) changed it in the store.
  void SetRecord(JobRecord record) { record_ = std::move(record); }
  void AddState(JobState state, const std::string& why);
  // Sets the reason of the current state and stores it soon; empty: no reason.
  void SetReason(const std::string& why);
  void AddNote(const std::string& text);
  // Adds an event of the coordinator if it is recorded: states, tasks, results, stalls.
  void AddEvent(const rendezvous::JobEvent& event);
  // Adds the tasks of a verdict that was read from a file, except ends that are stored.
  void AddVerdict(const rendezvous::Verdict& verdict);
  // Stores all pending events and the end (or the suspension) in a synced commit. If the store
  // fails, the error is logged, `record` still shows the end, and FlushRest tries again.
  void End(JobState state, const std::string& reason);
  // To be called after End, once at a time. Calls `done` at once if nothing is left to store.
  // Otherwise retries every 100 ms and calls `done` with the result on success, after 10 s of
  // errors, after GiveUp, or if another server leads (Aborted). A patient batcher retries for as
  // long as it takes, every 2 s after the first 10 s.
  void FlushRest(std::function<void(const Status&)> done);
  void GiveUp() { give_up_ = true; }

  // The job's record with all added events, stored or not.
  const JobRecord& record() const { return record_; }

 private:
  struct Outcome {
    Status stored;
    std::optional<JobRecord> record;  // of a synced commit: as stored afterwards
  };

  void Add(Event event);
  void FlushSoon();
  void Flush(Durability durability);
  void Commit(Durability durability);
  void OnCommitted(Outcome outcome);
  void ContinueRest(const Outcome& outcome);

  const EventBatcherOptions options_;
  JobRecord record_;
  EndedAttempts ended_;
  std::vector<Event> pending_;            // not in a commit yet
  std::vector<Event> committing_;         // in the commit in progress; empty: there is none
  std::optional<Durability> next_flush_;  // requested during the commit in progress
  int64_t result_seq_ = -1;  // last result that no pending event holds; -1: all are in events
  net::Loop::Id timer_ = 0;
  net::Loop::Id retry_timer_ = 0;
  TimePoint retry_until_{};
  std::function<void(const Status&)> rest_done_;  // set while FlushRest waits
  bool give_up_ = false;
  LoopTaskGroup tasks_{options_.loop};
};

}  // namespace shoal::controller
