#include "engine/tasks/event_hub.h"

#include <algorithm>
#include <mutex>

#include "base/mutex.h"

namespace shoal::engine {

// One watch. `calling` is held during its callback.
struct EventHub::Subscription {
  // Recursive, because a callback may end its own watch.
  std::recursive_mutex calling;
  std::function<void(const TaskEvent&)> on_event;  // guarded by calling; empty once ended
};

// Shared with the handles, so that these may outlive the hub.
struct EventHub::Shared {
  Mutex mu;
  std::multimap<std::string, std::shared_ptr<Subscription>> watches GUARDED_BY(mu);
};

class EventHub::Handle final : public Engine::Watcher {
 public:
  Handle(std::shared_ptr<Shared> shared, std::shared_ptr<Subscription> watch)
      : shared_(std::move(shared)), watch_(std::move(watch)) {}
  ~Handle() override {
    {
      const MutexLock lock(shared_->mu);
      std::erase_if(shared_->watches, [&](const auto& entry) { return entry.second == watch_; });
    }
    std::lock_guard lock(watch_->calling);  // waits for a running call on another thread
    ended_ = std::move(watch_->on_event);
    watch_->on_event = nullptr;
  }

 private:
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<Subscription> watch_;
  std::function<void(const TaskEvent&)> ended_;  // destroyed after the lock is released
};

EventHub::EventHub() : shared_(std::make_shared<Shared>()) {}

EventHub::~EventHub() {
  const MutexLock lock(shared_->mu);
  shared_->watches.clear();
}

std::unique_ptr<Engine::Watcher> EventHub::Watch(const std::string& job_id,
                                                 std::function<void(const TaskEvent&)> on_event) {
  auto watch = std::make_shared<Subscription>();
  watch->on_event = std::move(on_event);
  {
    const MutexLock lock(shared_->mu);
    shared_->watches.emplace(job_id, watch);
  }
  return std::make_unique<Handle>(shared_, std::move(watch));
}

void EventHub::Publish(const TaskEvent& event) {
  std::vector<std::shared_ptr<Subscription>> called;
  {
    const MutexLock lock(shared_->mu);
    auto [begin, end] = shared_->watches.equal_range(event.job_id);
    for (auto it = begin; it != end; ++it) called.push_back(it->second);
  }
  for (const std::shared_ptr<Subscription>& watch : called) {
    std::lock_guard lock(watch->calling);
    // A copy: the callback may end its own watch, which destroys the function.
    if (auto on_event = watch->on_event) on_event(event);
  }
}

}  // namespace shoal::engine
