// Functions that an object posts to its loop and that must not run after its destruction. Used by
// job_run.cc.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "net/event_loop.h"

namespace shoal::controller {

// Must be used on the loop's thread, except Post. The loop must outlive it.
class LoopTaskGroup {
 public:
  // Posts to the group from any thread, also after the group's destruction, without effect then.
  // Copyable; the loop must outlive it.
  class Poster {
   public:
    void Post(std::function<void()> fn) const {
      loop_->Post([alive = alive_, fn = std::move(fn)] {
        if (alive->load()) fn();
      });
    }

   private:
    friend class LoopTaskGroup;
    Poster(net::Loop* loop, std::shared_ptr<std::atomic<bool>> alive)
        : loop_(loop), alive_(std::move(alive)) {}

    net::Loop* loop_;
    std::shared_ptr<std::atomic<bool>> alive_;
  };

  explicit LoopTaskGroup(net::Loop* loop) : loop_(loop) {}
  ~LoopTaskGroup() { CancelAll(); }
  LoopTaskGroup(const LoopTaskGroup&) = delete;
  LoopTaskGroup& operator=(const LoopTaskGroup&) = delete;

  net::Loop* loop() const { return loop_; }
  Poster poster() const { return Poster(loop_, alive_); }
  // Callable from any thread.
  void Post(std::function<void()> fn) { poster().Post(std::move(fn)); }
  void PostAfter(Duration delay, std::function<void()> fn) {
    timers_.push_back(loop_->After(delay, std::move(fn)));
  }
  // Cancels all pending functions and timers; later calls of Post have no effect.
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
