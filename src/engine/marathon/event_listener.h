// Reads Marathon's event stream on its own thread. Events only trigger a poll of Marathon's state
// (as with Docker, ADR 82), so a lost event only causes a delay.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "engine/marathon/marathon_api.h"

namespace shoal::engine::marathon {

// Runs from construction to destruction; reconnects with back-off. Thread-safe.
class EventListener {
 public:
  // `api` outlives the listener. `on_event` is called on the listener's thread; an event without a
  // type means that the stream was (re)connected.
  EventListener(const MarathonApi* api, std::function<void(const Event&)> on_event);
  // Waits for a running callback.
  ~EventListener();

 private:
  void Listen();
  Status ListenOnce();

  const MarathonApi* const api_;
  const std::function<void(const Event&)> on_event_;
  Mutex mu_;
  CondVar ends_;
  std::shared_ptr<net::HttpStream> stream_ GUARDED_BY(mu_);
  bool ending_ GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace shoal::engine::marathon
