#include "controller/threads/worker_pool.h"

#include <utility>

#include "base/mutex.h"

namespace shoal::controller {

WorkerPool::~WorkerPool() {
  {
    const MutexLock lock(mu_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Execute(std::function<void()> call) {
  const MutexLock lock(mu_);
  calls_.push_back(std::move(call));
  if (idle_ < calls_.size() && threads_.size() < max_threads_)
    threads_.emplace_back([this] { Work(); });
  changed_.notify_one();
}

void WorkerPool::Work() {
  MutexLock lock(mu_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this]() REQUIRES(mu_) { return ending_ || !calls_.empty(); });
    --idle_;
    if (calls_.empty()) return;
    const std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    call();
    lock.lock();
  }
}

}  // namespace shoal::controller
