// Where jobs are remembered: an append-only event log and the state derived from it.
//
// The controller writes it, every command reads it. Several `shoal` processes share one store. The
// embedded one is SQLite (sqlite_store.h); a server's will be PostgreSQL. One contract suite
// (store_contract_test.cc) runs over all of them.
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

// kSynced: survives a power cut once the call has returned. kWritten: survives the death of every
// process, and a power cut from the next synced commit on; for what another commit repeats or what
// the job's directory can tell again.
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
  bool ended = true;       // with those that have ended
  bool unfinished = true;  // with those that have not
  int limit = 1000;        // the newest so many
};

struct StoreCounters {
  uint64_t synced_commits = 0;
  uint64_t written_commits = 0;
};

// Thread-safe. Every method that writes is one transaction: all of it or nothing. A record of which
// something cannot be read is given with what can (JobRecord::damage) and hides no other: tasks
// that cannot be read are left out, an event's body is then {"unreadable": why}.
class Store {
 public:
  virtual ~Store() = default;

  // The job with its first event ("submitted"), in one synced commit. AlreadyExists;
  // InvalidArgument if the job holds what is not UTF-8 (record_text.h).
  virtual Status Submit(const NewJob& job) = 0;

  // Appends in order and applies each event. NotFound; FailedPrecondition if the job had ended
  // (notes excepted): then nothing of the call is kept.
  virtual Status Append(const std::string& id, std::span<const Event> events,
                        Durability durability) = 0;

  // Appends what `decide` gives for the jobs that have not ended (oldest first), taken while nobody
  // else can write: so two processes never both give away the last of what there is. `decide` may
  // give nothing and must not call the store.
  using Decide = std::function<std::vector<Event>(const std::vector<JobRecord>& unfinished)>;
  virtual Status AppendDecided(const std::string& id, const Decide& decide,
                               Durability durability) = 0;

  // Changes the job's owner from exactly `from` to `to`; false if it is another's meanwhile or the
  // job has ended. So only one of several processes repairs a job that was left behind.
  virtual Result<bool> ClaimOwnership(const std::string& id, const ProcessIdentity& from,
                                      const ProcessIdentity& to, WallTime time) = 0;

  // The job with all its events, for good. NotFound; FailedPrecondition if it has not ended.
  virtual Status Remove(const std::string& id) = 0;
  // Ids of jobs that ended at least their limits.keep_records ago, oldest first; those whose file
  // does not say are kept. O(jobs that say it).
  virtual Result<std::vector<std::string>> ListExpired(WallTime now) = 0;

  virtual Result<JobRecord> GetJob(const std::string& id) = 0;
  // The one job whose id begins with `prefix` (a whole id always wins). Of several the
  // only one that has not ended. NotFound; InvalidArgument names some of them if there are more.
  virtual Result<JobRecord> FindJob(std::string_view prefix) = 0;
  // Newest first.
  virtual Result<std::vector<JobRecord>> ListJobs(const JobQuery& query) = 0;
  // By role in the order in which they were first heard of, then index.
  virtual Result<std::vector<TaskRecord>> ListTasks(const std::string& id) = 0;
  // Events with seq > `after`, at most `limit`.
  virtual Result<std::vector<Event>> ReadEvents(const std::string& id, int64_t after,
                                                int limit) = 0;

  // Calls `on_change` from a thread of the store after commits, of this process or another. It may
  // be called without need, never too seldom. Destroying the watcher ends the calls.
  class Watcher {
   public:
    virtual ~Watcher() = default;
  };
  virtual Result<std::unique_ptr<Watcher>> Watch(std::function<void()> on_change) = 0;

  virtual StoreCounters counters() const = 0;
};

}  // namespace shoal::controller
