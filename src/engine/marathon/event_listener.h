// Listens to a Marathon's stream of events, on a thread of its own. Events only make the engine
// look (as with Docker's, ADR 82): one that is lost costs time and nothing else.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/marathon/marathon_api.h"

namespace shoal::engine::marathon {

class EventListener {
 public:
  // `api` outlives it. `on_event` is called on its thread; an event without a type says that the
  // stream is there again.
  EventListener(const MarathonApi* api, std::function<void(const Event&)> on_event);
  // Waits for a call under way.
  ~EventListener();

 private:
  void Listen();
  Status ListenOnce();

  const MarathonApi* const api_;
  const std::function<void(const Event&)> on_event_;
  std::mutex mu_;
  std::condition_variable ends_;
  std::shared_ptr<net::HttpStream> stream_;  // guarded by mu_
  bool ending_ = false;                      // guarded by mu_
  std::thread thread_;
};

}  // namespace shoal::engine::marathon
