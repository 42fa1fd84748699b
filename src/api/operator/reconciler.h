// Brings ShoalJobs and their jobs into agreement, one object at a time: asks decide.h what to do,
// does it, and writes the status, until there is nothing left to do.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/operator/decide.h"
#include "api/operator/shoal_job.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace shoal::api {

// The objects of the cluster. Calls block; errors are those of KubeClient, AlreadyExists for a
// change of an object that has another version by now, Unavailable where the server is away.
class ShoalJobApi {
 public:
  virtual ~ShoalJobApi() = default;
  virtual Result<ShoalJob> Get(const ResourceKey& key) = 0;
  // Both change this version and this uid of the object only, and return what it is then.
  virtual Result<ShoalJob> SetFinalizers(const ShoalJob& object,
                                         const std::vector<std::string>& finalizers) = 0;
  virtual Result<ShoalJob> SetStatus(const ShoalJob& object, const json::object& status) = 0;
  // An event for `kubectl describe`. Errors are ignored.
  virtual void Announce(const ShoalJob& object, bool warning, const std::string& reason,
                        const std::string& message) = 0;
};

// The server's jobs. Calls block.
class OperatorJobs {
 public:
  virtual ~OperatorJobs() = default;
  // The job that was submitted for this uid.
  virtual Result<std::optional<OperatedJob>> Find(const ShoalJob& object) = 0;
  // OK if it was submitted before.
  virtual Status Submit(const ShoalJob& object) = 0;
  virtual Status Scale(const OperatedJob& job, const std::string& role, int replicas) = 0;
  virtual Status Suspend(const OperatedJob& job) = 0;
  virtual Status Resume(const OperatedJob& job) = 0;
  virtual Status Stop(const OperatedJob& job) = 0;
};

// All pointers must outlive the reconciler.
struct ReconcilerOptions {
  ShoalJobApi* objects = nullptr;
  OperatorJobs* jobs = nullptr;
  const Clock* clock = RealClock::Get();
  std::string server;  // id of the store
};

// Put, Replace and Remove from any thread; Reconcile from one at a time.
class Reconciler {
 public:
  explicit Reconciler(ReconcilerOptions options) : options_(std::move(options)) {}

  // What a watch has seen.
  void Put(const ShoalJob& object);
  void Remove(const ShoalJob& object);
  // All objects of a namespace, or of the cluster if it is empty. Returns the keys to look at: of
  // these, and of those that are gone.
  std::vector<ResourceKey> Replace(const std::string& name_space,
                                   const std::vector<ShoalJob>& objects);
  std::optional<ShoalJob> Find(const ResourceKey& key) const;
  std::vector<ResourceKey> Keys() const;
  // The object whose job this is, as far as it was reconciled.
  std::optional<ResourceKey> KeyOf(const std::string& job_id) const;

  // Returns after which time to look at the object again; none: when it or its job changes.
  std::optional<Duration> Reconcile(const ResourceKey& key);

 private:
  // What this process remembers of an object, until it is gone.
  struct Memory {
    std::string uid;
    int64_t generation = 0;  // of the two errors
    std::optional<Status> refusal;
    TimePoint refused_at{};
    std::optional<Status> change_error;
    bool stop_sent = false;
    bool poll = false;  // the job will change without an event
    int failures = 0;   // in a row
    std::string announced;
  };
  enum class Round : uint8_t { kDone, kAgain, kLater, kGone };

  Round Look(const ShoalJob& object, Memory* memory);
  // True if the job was not known.
  bool Register(const std::string& job_id, const ResourceKey& key);
  Status Perform(const Decision& decision, const ShoalJob& object, const OperatedJob* job,
                 Memory* memory);
  Round AfterError(const Status& error, const Decision& decision, const ShoalJob& object,
                   Memory* memory);
  Round Refresh(const ShoalJob& object);
  void Announce(const ShoalJob& object, Memory* memory);
  Duration Delay(Memory* memory) const;

  const ReconcilerOptions options_;
  std::map<ResourceKey, Memory> memories_;  // of the thread of Reconcile
  mutable Mutex mu_;
  std::map<ResourceKey, ShoalJob> objects_ GUARDED_BY(mu_);
  std::map<std::string, ResourceKey> keys_ GUARDED_BY(mu_);  // by job
};

}  // namespace shoal::api
