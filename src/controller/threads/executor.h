// Executes calls that may block (on an engine, the store or the disk) outside of a loop's thread.
// A supervisor's worker pools implement it (supervisor/worker_pool.h); `shoal run` has none and
// makes most of these calls on its only thread.
#pragma once

#include <functional>

namespace shoal::controller {

// Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;
  // Calls may run at once. They begin in the order of Execute.
  virtual void Execute(std::function<void()> call) = 0;
};

// The executors of a run; both null or both set.
struct RunExecutors {
  Executor* engine = nullptr;
  Executor* store = nullptr;
};

}  // namespace shoal::controller
