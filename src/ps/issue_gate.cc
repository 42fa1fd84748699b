#include "ps/issue_gate.h"

#include <utility>
#include <vector>

namespace shoal::ps {

int& IssueGate::Depth() {
  // Nearly always one gate a thread. Entries of gates that are gone hold 0 and are taken over.
  thread_local std::vector<std::pair<const IssueGate*, int>> depths;
  std::pair<const IssueGate*, int>* free = nullptr;
  for (auto& entry : depths) {
    if (entry.first == this) return entry.second;
    if (entry.second == 0) free = &entry;
  }
  if (free == nullptr) free = &depths.emplace_back();
  *free = {this, 0};
  return free->second;
}

void IssueGate::Enter() {
  int& depth = Depth();
  if (depth++ > 0) return;
  std::unique_lock lock(mu_);
  open_.wait(lock, [this] { return !injecting_ && wanted_ < 0; });
  ++inside_;
}

void IssueGate::Leave() {
  int& depth = Depth();
  if (--depth > 0) return;
  std::unique_lock lock(mu_);
  if (--inside_ == 0 && wanted_ >= 0 && !injecting_) InjectLocked(&lock);
}

void IssueGate::EnterIssue() {
  int& depth = Depth();
  const bool outermost = depth++ == 0;
  std::unique_lock lock(mu_);
  open_.wait(lock, [&] { return !closed_ && (!outermost || (!injecting_ && wanted_ < 0)); });
  inside_ += outermost;
  ++issuing_;
}

void IssueGate::LeaveIssue() {
  int& depth = Depth();
  std::unique_lock lock(mu_);
  if (--issuing_ == 0 && closed_) still_.notify_all();
  if (--depth > 0) return;
  if (--inside_ == 0 && wanted_ >= 0 && !injecting_) InjectLocked(&lock);
}

void IssueGate::CloseRoutes() {
  std::lock_guard lock(mu_);
  closed_ = true;
}

void IssueGate::AwaitRoutes() {
  std::unique_lock lock(mu_);
  still_.wait(lock, [this] { return issuing_ == 0; });
}

void IssueGate::OpenRoutes() {
  std::lock_guard lock(mu_);
  closed_ = false;
  open_.notify_all();
}

void IssueGate::Request(int64_t checkpoint) {
  std::unique_lock lock(mu_);
  wanted_ = std::max(wanted_, checkpoint);
  if (inside_ == 0 && !injecting_) InjectLocked(&lock);
}

void IssueGate::InjectLocked(std::unique_lock<std::mutex>* lock) {
  injecting_ = true;
  while (wanted_ >= 0) {
    const int64_t checkpoint = std::exchange(wanted_, -1);
    lock->unlock();
    inject_(checkpoint);
    lock->lock();
  }
  injecting_ = false;
  open_.notify_all();
}

}  // namespace shoal::ps
