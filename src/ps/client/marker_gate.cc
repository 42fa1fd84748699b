#include "ps/client/marker_gate.h"

#include <utility>
#include <vector>

#include "base/mutex.h"

namespace shoal::ps {

int& MarkerGate::ScopeDepth() {
  // Nearly always one gate a thread. Entries of gates that are gone hold 0 and are taken over.
  thread_local std::vector<std::pair<const MarkerGate*, int>> depths;
  std::pair<const MarkerGate*, int>* free = nullptr;
  for (auto& entry : depths) {
    if (entry.first == this) return entry.second;
    if (entry.second == 0) free = &entry;
  }
  if (free == nullptr) free = &depths.emplace_back();
  *free = {this, 0};
  return free->second;
}

void MarkerGate::Enter() {
  int& depth = ScopeDepth();
  if (depth++ > 0) return;
  MutexLock lock(mu_);
  open_cv_.wait(lock, [this] { return !sending_marker_ && waiting_marker_ < 0; });
  ++scopes_;
}

void MarkerGate::Leave() {
  int& depth = ScopeDepth();
  if (--depth > 0) return;
  MutexLock lock(mu_);
  if (--scopes_ == 0 && waiting_marker_ >= 0 && !sending_marker_) SendMarkerLocked(&lock);
}

void MarkerGate::EnterIssue() {
  int& depth = ScopeDepth();
  const bool outermost = depth++ == 0;
  MutexLock lock(mu_);
  open_cv_.wait(lock, [&] {
    return !routes_closed_ && (!outermost || (!sending_marker_ && waiting_marker_ < 0));
  });
  scopes_ += outermost;
  ++issuers_;
}

void MarkerGate::LeaveIssue() {
  int& depth = ScopeDepth();
  MutexLock lock(mu_);
  if (--issuers_ == 0 && routes_closed_) empty_cv_.notify_all();
  if (--depth > 0) return;
  if (--scopes_ == 0 && waiting_marker_ >= 0 && !sending_marker_) SendMarkerLocked(&lock);
}

void MarkerGate::CloseRoutes() {
  const MutexLock lock(mu_);
  routes_closed_ = true;
}

void MarkerGate::AwaitRoutes() {
  MutexLock lock(mu_);
  empty_cv_.wait(lock, [this] { return issuers_ == 0; });
}

void MarkerGate::OpenRoutes() {
  const MutexLock lock(mu_);
  routes_closed_ = false;
  open_cv_.notify_all();
}

void MarkerGate::RequestMarker(int64_t checkpoint) {
  MutexLock lock(mu_);
  waiting_marker_ = std::max(waiting_marker_, checkpoint);
  if (scopes_ == 0 && !sending_marker_) SendMarkerLocked(&lock);
}

void MarkerGate::SendMarkerLocked(MutexLock* lock) {
  sending_marker_ = true;
  while (waiting_marker_ >= 0) {
    const int64_t checkpoint = std::exchange(waiting_marker_, -1);
    lock->unlock();
    send_marker_(checkpoint);
    lock->lock();
  }
  sending_marker_ = false;
  open_cv_.notify_all();
}

}  // namespace shoal::ps
