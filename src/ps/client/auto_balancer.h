// Balances the servers of a job automatically: moves shards to servers that have joined, and from
// servers that hold much more than others.
//
// Runs beside the leader (server.cc), which lives as long as the job; no other process balances, so
// plans do not conflict (docs/adr/0058-the-leader-balances.md). Checks periodically, begins only
// above a threshold, and then moves a few shards at a time.
#pragma once

#include <memory>
#include <thread>

#include "base/mutex.h"
#include "ps/client/admin.h"

namespace shoal::ps {

class AutoBalancer {
 public:
  // `members` outlives it.
  AutoBalancer(ClientOptions client, Members* members, Duration every);
  // Ends at once, or as soon as it has given up connecting (250 ms).
  ~AutoBalancer();

 private:
  void Run();
  Status RunOnce();
  Result<std::shared_ptr<Admin>> ConnectedAdmin();

  const ClientOptions client_;
  Members* const members_;
  const Duration every_;
  // The thread's.
  bool more_moves_ = false;  // there were more moves than one round makes
  int64_t restarts_ = 0;     // of servers, that it has heard of
  TimePoint quiet_until_{};
  Mutex mu_;
  CondVar wake_;
  bool stop_ GUARDED_BY(mu_) = false;
  std::shared_ptr<Admin> admin_ GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace shoal::ps
