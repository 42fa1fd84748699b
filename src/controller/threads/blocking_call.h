// One call that may block, for an object on a loop. Used by job_run.cc.
#pragma once

#include <functional>
#include <utility>

#include "base/status.h"
#include "controller/threads/executor.h"
#include "controller/threads/loop_task_group.h"

namespace shoal::controller {

// Executes `call` and delivers its result to `done` on the loop's thread, not after the destruction
// of the poster's group. Without an executor both happen before the return.
inline void CallBlocking(Executor* executor, const LoopTaskGroup::Poster& poster,
                         std::function<Status()> call, std::function<void(const Status&)> done) {
  if (executor == nullptr) return done(call());
  executor->Execute([poster, call = std::move(call), done = std::move(done)] {
    poster.Post([done, status = call()] { done(status); });
  });
}

}  // namespace shoal::controller
