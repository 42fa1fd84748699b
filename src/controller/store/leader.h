// Keeps a store's leader lease, or waits for it: of several servers on one database one leads. Used
// by `shoal server`.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "controller/store/store.h"

namespace shoal::controller {

struct LeaderOptions {
  std::string holder;  // names this server; the same after a restart, so that it need not wait
  Duration ttl = std::chrono::seconds(6);    // another leads after this long without renewal
  Duration retry = std::chrono::seconds(1);  // between attempts to take the lease
  const Clock* clock = RealClock::Get();     // monotonic; outlives the object
  // Another server leads: its lease, after each attempt to take the lead that shows it. Called like
  // the callbacks of the constructor; optional.
  std::function<void(const Lease&)> on_follow = {};
};

// Has a thread of its own, on which it calls back. Thread-safe.
class Leader {
 public:
  // `on_lead`: this server leads now; the store's fence is set (Store::SetFence). `on_lost`: it no
  // longer does, and why. They alternate, and neither is called after the destructor. `store` must
  // outlive the object.
  Leader(Store* store, LeaderOptions options, std::function<void(const Fence&)> on_lead,
         std::function<void(const Status&)> on_lost);
  // Gives the lease up without calling back, so that another server need not wait for its end.
  ~Leader();
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  // Whether this server leads: false as soon as the time of the lease has passed, also while a
  // renewal waits for the database.
  bool leading() const;

 private:
  void Loop();
  void TryToLead();
  void Renew();
  void Lose(const Status& why);
  bool held() const;  // the lease was taken, and its loss is not yet known

  Store* const store_;
  const LeaderOptions options_;
  const std::function<void(const Fence&)> on_lead_;
  const std::function<void(const Status&)> on_lost_;
  mutable Mutex mu_;
  CondVar wake_;
  bool stop_ GUARDED_BY(mu_) = false;  // as are the next two
  Fence fence_;                        // without a name: the lease is not held
  TimePoint deadline_{};               // of the lease
  std::thread thread_;
};

}  // namespace shoal::controller
