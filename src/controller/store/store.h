// The store of jobs: an append-only event log and the state derived from it.
//
// The controller writes it, every command reads it, and several `shoal` processes share it. The
// embedded one is SQLite (sqlite_store.h). store_contract_test.cc runs over every implementation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "controller/store/job_record.h"

namespace shoal::controller {

// kSynced: durable after a power cut once the call has returned. kWritten: survives the death of
// every process, and a power cut from the next synced commit on; for events that a later commit
// repeats or that can be restored from the job's directory.
enum class Durability : uint8_t { kSynced, kWritten };

struct NewJob {
  std::string id;
  std::string name;
  std::string engine;
  json::object job;
  ProcessIdentity owner;
  WallTime time{};
};

struct JobQuery {
  bool ended = true;       // include ended jobs
  bool unfinished = true;  // include unfinished jobs
  int limit = 1000;        // at most this many, newest first
};

struct StoreCounters {
  uint64_t synced_commits = 0;
  uint64_t written_commits = 0;
};

// Thread-safe. Every writing method is one transaction. A record that is partly unreadable is
// returned with its readable parts (JobRecord::damage) and does not hide other records: unreadable
// tasks are omitted, and the body of an unreadable event is {"unreadable": why}.
class Store {
 public:
  virtual ~Store() = default;

  // Stores the job with its first event ("submitted") in one synced commit. AlreadyExists;
  // InvalidArgument if the job contains text that is not UTF-8 (record_text.h).
  virtual Status Submit(const NewJob& job) = 0;

  // Appends the events in order and applies each. NotFound; FailedPrecondition if the job had ended
  // (notes excepted), which discards the whole call.
  virtual Status Append(const std::string& id, std::span<const Event> events,
                        Durability durability) = 0;

  // Appends the events that `decide` returns for the unfinished jobs (oldest first). `decide` runs
  // while no other process can write, so two processes never allocate the same resources. It may
  // return no events and must not call the store.
  using Decide = std::function<std::vector<Event>(const std::vector<JobRecord>& unfinished)>;
  virtual Status AppendDecided(const std::string& id, const Decide& decide,
                               Durability durability) = 0;

  // Changes the job's owner from `from` to `to`; false if the owner differs from `from` or the job
  // has ended. Ensures that only one process recovers a job.
  virtual Result<bool> ClaimOwnership(const std::string& id, const ProcessIdentity& from,
                                      const ProcessIdentity& to, WallTime time) = 0;

  // Deletes the job with all its events. NotFound; FailedPrecondition if it has not ended.
  virtual Status Remove(const std::string& id) = 0;
  // Ids of jobs that ended at least their limits.keep_records ago, oldest first. Jobs without the
  // field are kept. O(jobs with the field).
  virtual Result<std::vector<std::string>> ListExpired(WallTime now) = 0;

  virtual Result<JobRecord> GetJob(const std::string& id) = 0;
  // The job whose id begins with `prefix`; an exact match takes precedence, then the only
  // unfinished one of several. NotFound; InvalidArgument lists some of several matches.
  virtual Result<JobRecord> FindJob(std::string_view prefix) = 0;
  // Newest first.
  virtual Result<std::vector<JobRecord>> ListJobs(const JobQuery& query) = 0;
  // Ordered by role, in the order of their first events, then by index.
  virtual Result<std::vector<TaskRecord>> ListTasks(const std::string& id) = 0;
  // At most `limit` events with seq > `after`.
  virtual Result<std::vector<Event>> ReadEvents(const std::string& id, int64_t after,
                                                int limit) = 0;

  // Calls `on_change` on a thread of the store after each commit of this or another process, and
  // possibly without one. Calls end with the destruction of the watcher.
  class Watcher {
   public:
    virtual ~Watcher() = default;
  };
  virtual Result<std::unique_ptr<Watcher>> Watch(std::function<void()> on_change) = 0;

  virtual StoreCounters counters() const = 0;
};

}  // namespace shoal::controller
