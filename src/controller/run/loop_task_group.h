// What an object has run on its loop by and by, and no more once it is gone (job_run.cc).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "net/event_loop.h"

namespace shoal::controller {

// Belongs to the loop's thread, but for Post.
class LoopTaskGroup {
 public:
  explicit LoopTaskGroup(net::Loop* loop) : loop_(loop) {}
  ~LoopTaskGroup() { CancelAll(); }
  LoopTaskGroup(const LoopTaskGroup&) = delete;
  LoopTaskGroup& operator=(const LoopTaskGroup&) = delete;

  // Any thread.
  void Post(std::function<void()> fn) {
    loop_->Post([alive = alive_, fn = std::move(fn)] {
      if (alive->load()) fn();
    });
  }
  void PostAfter(Duration delay, std::function<void()> fn) {
    timers_.push_back(loop_->After(delay, std::move(fn)));
  }
  // Nothing runs any more.
  void CancelAll() {
    alive_->store(false);
    for (const net::Loop::Id timer : std::exchange(timers_, {})) loop_->Cancel(timer);
  }

 private:
  net::Loop* const loop_;
  std::vector<net::Loop::Id> timers_;
  const std::shared_ptr<std::atomic<bool>> alive_ = std::make_shared<std::atomic<bool>>(true);
};

}  // namespace shoal::controller
