// Delivery of task events to watches, shared by all engines. Events arrive in order, and a watch
// may end at any time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace shoal::engine {

// Thread-safe. A watch may outlive the hub; it then receives no more events.
class EventHub {
 public:
  EventHub();
  ~EventHub();

  std::unique_ptr<Engine::Watcher> Watch(const std::string& job_id,
                                         std::function<void(const TaskEvent&)> on_event);
  // Calls every watch of the event's job, one after the other, on the calling thread. The caller
  // must not hold a lock that a callback may acquire.
  void Publish(const TaskEvent& event);

 private:
  struct Subscription;
  struct Shared;
  class Handle;
  std::shared_ptr<Shared> shared_;
};

// Base of the engines: implements Engine::Watch by an EventHub.
class PublishingEngine : public Engine {
 public:
  std::unique_ptr<Watcher> Watch(const std::string& job_id,
                                 std::function<void(const TaskEvent&)> on_event) override {
    return hub_->Watch(job_id, std::move(on_event));
  }

 protected:
  // The caller must not hold a lock that a watch's callback may acquire.
  void Publish(const std::vector<TaskEvent>& events) {
    for (const TaskEvent& event : events) hub_->Publish(event);
  }
  const std::shared_ptr<EventHub>& hub() const { return hub_; }

 private:
  const std::shared_ptr<EventHub> hub_ = std::make_shared<EventHub>();
};

}  // namespace shoal::engine
