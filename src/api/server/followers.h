// All followers of a server, on a thread of their own: it wakes them when the store changes, when
// logs of their jobs grow, and for events that are not stored.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "api/server/follower.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "controller/files/log_store.h"
#include "controller/store/store.h"
#include "controller/supervisor/supervisor.h"
#include "net/event_loop.h"

namespace shoal::api {

struct FollowersOptions {
  controller::Store* store = nullptr;
  controller::Supervisor* supervisor = nullptr;  // for events that are not stored
  controller::StateHome home{std::filesystem::path()};
  // Whether the user still has its rights. Asked now and then on the loop's thread.
  std::function<bool(const Principal&)> still_valid;
};

// Thread-safe.
class Followers {
 public:
  using Id = uint64_t;
  static constexpr Duration kPing = std::chrono::seconds(15);
  // Followers at once; more are refused.
  static constexpr size_t kMax = 5000;

  static Result<std::unique_ptr<Followers>> Start(FollowersOptions options);
  ~Followers();
  Followers(const Followers&) = delete;
  Followers& operator=(const Followers&) = delete;

  // Adds a follower with the rights of `principal`. 0 if there are too many.
  Id AddJob(JobFollowRequest request, const Principal& principal, std::shared_ptr<Sink> sink);
  Id AddEvents(EventsFollowRequest request, std::shared_ptr<Sink> sink);
  Id Add(std::unique_ptr<Follower> follower, const Principal& principal);
  // Its sink has room again.
  void Wake(Id id);
  // Its peer has gone, or asked for no more. Writes nothing more once the thread has seen it.
  void Remove(Id id);
  // Calls `fn` on the thread after `delay`; it must not block.
  void Later(Duration delay, std::function<void()> fn);
  // Ends all streams, since the server ends; clients connect again.
  void FinishAll();
  size_t count() const;

 private:
  struct Entry {
    std::unique_ptr<Follower> follower;
    Principal principal;
  };
  // The files of one job's logs, watched for all its followers.
  struct WatchedLogs {
    std::unique_ptr<controller::LogStore::Follower> follower;
    int users = 0;
  };

  explicit Followers(FollowersOptions options);
  Status Watch();
  void Insert(Id id, Entry entry);
  void Erase(Id id);
  void PumpAll(const std::vector<Id>& ids);
  void PumpJob(const std::string& job);
  void OnStored();
  void OnLog(const std::string& job);
  void OnLive(const std::string& job, const std::string& event, const json::object& data);
  void WatchLogs(const std::string& job);
  void Tick();
  std::vector<Id> OfJob(const std::string& job) const;

  const FollowersOptions options_;
  net::Loop loop_;
  FollowerSources sources_;
  // Below: of the loop's thread.
  std::map<Id, Entry> followers_;
  std::multimap<std::string, Id> by_job_;
  std::map<std::string, WatchedLogs> logs_;
  std::unique_ptr<controller::Store::Watcher> watcher_;
  std::unique_ptr<controller::Supervisor::Observation> observation_;
  mutable Mutex mu_;
  Id next_ GUARDED_BY(mu_) = 1;
  size_t count_ GUARDED_BY(mu_) = 0;
  std::multiset<std::string> jobs_;  // followed ones; guarded by mu_
  std::thread thread_;
};

}  // namespace shoal::api
