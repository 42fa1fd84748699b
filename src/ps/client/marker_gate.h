// Keeps checkpoint markers out from between requests that belong together, without ever blocking
// the receiving thread.
//
// Any number of threads may issue requests at a time (shared); a marker goes out while no scope is
// open (exclusive). The thread that closes the last scope sends a marker that waits; with no scope
// open the receiving thread sends it itself.
#pragma once

#include <cstdint>
#include <functional>

#include "base/mutex.h"

namespace shoal::ps {

// Thread-safe.
class MarkerGate {
 public:
  // `send_marker(checkpoint)` runs while no scope is open, on some thread.
  explicit MarkerGate(std::function<void(int64_t)> send_marker)
      : send_marker_(std::move(send_marker)) {}

  // A scope; may be nested in one thread. Waits while a marker goes out or waits for its turn, but
  // not in a thread that has one open already.
  void Enter();
  void Leave();
  // The same around one request, while routes are open: between CloseRoutes and OpenRoutes no
  // thread decides where a request goes, not even inside a scope.
  void EnterIssue();
  void LeaveIssue();
  // Never blocks.
  void CloseRoutes();
  // Waits until no thread is between EnterIssue and LeaveIssue.
  void AwaitRoutes();
  void OpenRoutes();
  // Has a marker sent for this checkpoint: now, or by the thread that closes the last scope. Never
  // blocks.
  void RequestMarker(int64_t checkpoint);

 private:
  // The number of nested scopes of this thread.
  int& ScopeDepth();
  // Releases the lock while it sends.
  void SendMarkerLocked(MutexLock* lock) REQUIRES(mu_) NO_THREAD_SAFETY_ANALYSIS;

  const std::function<void(int64_t)> send_marker_;
  Mutex mu_;
  CondVar open_cv_;
  CondVar empty_cv_;
  int scopes_ = 0;               // threads
  int issuers_ = 0;              // likewise
  bool routes_closed_ = false;   // routes
  bool sending_marker_ = false;  // exclusive
  int64_t waiting_marker_ = -1;  // a marker that waits for the gate to be empty
};

}  // namespace shoal::ps
