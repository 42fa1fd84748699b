// Keys with the times at which they are due; a key is in it once, at the earliest of its times.
// Header-only, thread-safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace shoal::api {

template <typename Key>
class DueQueue {
 public:
  void Add(const Key& key, TimePoint at) {
    {
      const MutexLock lock(mu_);
      const auto known = times_.find(key);
      if (known != times_.end() && known->second <= at) return;
      if (known != times_.end()) order_.erase({known->second, key});
      times_[key] = at;
      order_.insert({at, key});
    }
    changed_.notify_all();
  }
  // The next key that is due, which is removed; none yet: nothing. O(log n).
  std::optional<Key> Take(TimePoint now) {
    const MutexLock lock(mu_);
    return TakeLocked(now);
  }
  // Waits for one by this clock, which must move by itself. Nothing after Close.
  std::optional<Key> Wait(const Clock& clock) {
    MutexLock lock(mu_);
    while (!closed_) {
      if (auto key = TakeLocked(clock.Now())) return key;
      if (order_.empty()) {
        changed_.wait(lock);
      } else {
        changed_.wait_for(lock, order_.begin()->first - clock.Now());
      }
    }
    return std::nullopt;
  }
  void Close() {
    {
      const MutexLock lock(mu_);
      closed_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::optional<Key> TakeLocked(TimePoint now) REQUIRES(mu_) {
    if (order_.empty() || order_.begin()->first > now) return std::nullopt;
    const Key key = order_.begin()->second;
    order_.erase(order_.begin());
    times_.erase(key);
    return key;
  }

  Mutex mu_;
  CondVar changed_;
  std::map<Key, TimePoint> times_ GUARDED_BY(mu_);
  std::set<std::pair<TimePoint, Key>> order_ GUARDED_BY(mu_);
  bool closed_ GUARDED_BY(mu_) = false;
};

}  // namespace shoal::api
