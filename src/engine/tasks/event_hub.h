// Who watches which job, shared by all engines: delivers events in order, and lets a watch end at
// any time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace shoal::engine {

// Thread-safe. Watches may outlive the hub: they then end silently.
class EventHub {
 public:
  EventHub();
  ~EventHub();

  std::unique_ptr<Engine::Watcher> Watch(const std::string& job_id,
                                         std::function<void(const TaskEvent&)> on_event);
  // Calls every watch of the event's job, one after the other, on this thread. Not to be called
  // with a lock held that a callback could want.
  void Publish(const TaskEvent& event);

 private:
  struct Subscription;
  struct Shared;
  class Handle;
  std::shared_ptr<Shared> shared_;
};

// An engine whose watches are a hub's.
class PublishingEngine : public Engine {
 public:
  std::unique_ptr<Watcher> Watch(const std::string& job_id,
                                 std::function<void(const TaskEvent&)> on_event) override {
    return hub_->Watch(job_id, std::move(on_event));
  }

 protected:
  // Not with a lock held that a watch could want.
  void Publish(const std::vector<TaskEvent>& events) {
    for (const TaskEvent& event : events) hub_->Publish(event);
  }
  const std::shared_ptr<EventHub>& hub() const { return hub_; }

 private:
  const std::shared_ptr<EventHub> hub_ = std::make_shared<EventHub>();
};

}  // namespace shoal::engine
