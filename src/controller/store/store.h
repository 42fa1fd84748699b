// The store of jobs: an append-only event log and the state derived from it.
//
// The controller writes it, every command reads it, and several `shoal` processes share it. The
// embedded one is SQLite (sqlite_store.h); several servers share PostgreSQL (open_store.h opens
// either by its URL). store_contract_test.cc runs over every implementation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "controller/store/job_record.h"
#include "controller/store/lease.h"
#include "controller/store/records.h"

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
  std::string team{};  // empty without a server, as are the next two
  std::string user{};  // the person or service account that submitted it
  JobLabels labels{};  // of the submission; found by JobFilter::labels
};

struct JobQuery {
  bool ended = true;       // include ended jobs
  bool unfinished = true;  // include unfinished jobs
  int limit = 1000;        // at most this many, newest first
};

// Empty fields match every job.
struct JobFilter {
  std::vector<JobState> states{};
  std::string name_prefix{};
  std::vector<std::string> teams{};
  std::string user{};
  std::string engine{};
  JobLabels labels{};  // all of them
  WallTime since{};    // submitted at or after this
  WallTime until{};    // submitted before this; epoch: no limit
};

// The columns of a job that listings show. Reading one parses no job.
struct JobSummary {
  std::string id;
  std::string name;
  JobState state = JobState::kPending;
  std::string reason;
  std::string engine;
  std::string team;
  std::string user;
  JobLabels labels;
  WallTime submitted{};
  WallTime started{};  // epoch: not yet, as is the next
  WallTime ended{};
  int64_t order = 0;
  int64_t last_seq = 0;  // the version of the job: every event raises it
};

struct JobPage {
  std::vector<JobSummary> jobs;  // newest first
  std::string next;              // cursor of the next, older page; empty: there are no more
};

// An event with its place among the events of all jobs.
struct StoredEvent {
  int64_t position = 0;  // ascending in commit order, with gaps
  std::string job;       // its id
  std::string team;
  Event event;
};

// Conditions of an Append beside the job's state.
struct AppendCheck {
  Fence fence{};            // without a name: the store's own (SetFence)
  int64_t after = kAnySeq;  // the job's last event must be this one. If the events after it are
                            // the given ones, they were stored before, and the call succeeds
  static constexpr int64_t kAnySeq = -1;
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
  // Likewise under conditions. Aborted, and nothing is stored, if the fence's epoch is old or the
  // job has other events after `check.after`.
  virtual Status AppendChecked(const std::string& id, std::span<const Event> events,
                               Durability durability, const AppendCheck& check) = 0;

  // Appends the events that `decide` returns for the unfinished jobs (oldest first). `decide` runs
  // while no other process can write, so two processes never allocate the same resources, possibly
  // on another thread and, if the connection to a database is lost, more than once. It may return
  // no events and must not call the store.
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

  // One page of the jobs that match. `after`: JobPage::next of the previous page, or empty.
  // `limit`: 1 to 1000. InvalidArgument for a cursor that is not one of this store.
  virtual Result<JobPage> ListPage(const JobFilter& filter, std::string_view after, int limit) = 0;
  // At most `limit` events of all jobs with a position > `after`, in commit order: once a position
  // can be read, no smaller one will appear. Events of removed jobs are gone.
  virtual Result<std::vector<StoredEvent>> ReadAllEvents(int64_t after, int limit) = 0;
  // The position of the newest event; 0 if there was none.
  virtual Result<int64_t> LastPosition() = 0;
  // A random word made with the store; part of its cursors (cursor.h).
  virtual const std::string& store_id() const = 0;

  // Takes the lease if it has no holder, it has expired, or `holder` holds it already; the epoch
  // then is greater than that of every earlier lease of this store. Otherwise returns the lease of
  // its holder (Lease::acquired is false). `ttl`: how long it lasts without RenewLease.
  virtual Result<Lease> AcquireLease(const std::string& name, const std::string& holder,
                                     Duration ttl) = 0;
  // Extends the lease. Aborted if it has another epoch by now. A lease that expired and was not
  // taken by another holder can be extended.
  virtual Result<Lease> RenewLease(const Fence& fence, Duration ttl) = 0;
  // Gives the lease up, so that another holder need not wait. OK if it is not held any more.
  virtual Status ReleaseLease(const Fence& fence) = 0;
  // From now on every write of jobs and records through this object (Submit, Append, AppendDecided,
  // ClaimOwnership, Remove, Records; not Audit) is refused with Aborted, and changes nothing,
  // unless the lease still has this epoch. A fence without a name: no check.
  virtual void SetFence(const Fence& fence) = 0;

  virtual Records& records() = 0;
  virtual Audit& audit() = 0;

  // Writes a consistent copy of the whole store to the new file `path` (mode 0600), while others
  // read and write. AlreadyExists; Unimplemented for PostgreSQL, whose own tool does this.
  virtual Status Backup(const std::filesystem::path& path) = 0;

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
