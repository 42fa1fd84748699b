// Tells of each job whose events have been stored. A record that is read then has them, unlike at
// the time at which the supervisor tells of them: it stores events of running jobs in batches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "controller/store/store.h"

namespace shoal::api {

class EventFollower {
 public:
  using OnJob = std::function<void(const std::string& id)>;

  // Of events that are stored from now on, in any process. `on_job` is called on a thread of the
  // follower. `store` must outlive it.
  static Result<std::unique_ptr<EventFollower>> Start(controller::Store* store, OnJob on_job);
  // Waits for a running call.
  ~EventFollower();

 private:
  EventFollower(controller::Store* store, OnJob on_job)
      : store_(store), on_job_(std::move(on_job)) {}
  void Run();
  void ReadAll();
  bool Await();

  controller::Store* const store_;
  const OnJob on_job_;
  int64_t position_ = 0;  // of the last event that was read; of the thread
  Mutex mu_;
  CondVar changed_;
  bool more_ GUARDED_BY(mu_) = false;
  bool ending_ GUARDED_BY(mu_) = false;
  std::unique_ptr<controller::Store::Watcher> watcher_;
  std::thread thread_;
};

}  // namespace shoal::api
