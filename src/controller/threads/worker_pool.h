// Threads for calls that may block, at most a fixed number at once. A supervisor has one pool for
// its store and one for each engine, so that a cluster that does not answer delays its own jobs
// alone.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "controller/threads/executor.h"

namespace shoal::controller {

// Thread-safe. Threads are started when calls wait for one, and live as long as the pool.
class WorkerPool final : public Executor {
 public:
  explicit WorkerPool(size_t max_threads) : max_threads_(max_threads) {}
  // Executes all calls that are waiting, then returns.
  ~WorkerPool() override;
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Execute(std::function<void()> call) override;

 private:
  void Work();

  const size_t max_threads_;
  Mutex mu_;
  CondVar changed_;
  std::deque<std::function<void()>> calls_ GUARDED_BY(mu_);
  std::vector<std::thread> threads_ GUARDED_BY(mu_);  // except in the destructor
  size_t idle_ GUARDED_BY(mu_) = 0;                   // threads that wait for a call
  bool ending_ GUARDED_BY(mu_) = false;
};

}  // namespace shoal::controller
