#include "controller/store/leader.h"

#include <utility>

#include "base/log.h"
#include "base/mutex.h"

namespace shoal::controller {

Leader::Leader(Store* store, LeaderOptions options, std::function<void(const Fence&)> on_lead,
               std::function<void(const Status&)> on_lost)
    : store_(store),
      options_(std::move(options)),
      on_lead_(std::move(on_lead)),
      on_lost_(std::move(on_lost)),
      thread_([this] { Loop(); }) {}

Leader::~Leader() {
  {
    const MutexLock lock(mu_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
  if (!held()) return;
  const Status released = store_->ReleaseLease(fence_);
  if (!released.ok()) LogWarning("the lead was not given up: {}", released.message());
}

bool Leader::held() const {
  const MutexLock lock(mu_);
  return !fence_.lease.empty();
}

bool Leader::leading() const {
  const MutexLock lock(mu_);
  return !fence_.lease.empty() && options_.clock->Now() < deadline_;
}

void Leader::Loop() {
  while (true) {
    held() ? Renew() : TryToLead();
    const Duration pause = held() ? options_.ttl / 3 : options_.retry;
    MutexLock lock(mu_);
    if (wake_.wait_for(lock, pause, [this]() REQUIRES(mu_) { return stop_; })) return;
  }
}

void Leader::TryToLead() {
  const TimePoint begin = options_.clock->Now();
  const Result<Lease> lease = store_->AcquireLease(kLeaderLease, options_.holder, options_.ttl);
  if (!lease.ok()) LogWarning("the lead cannot be taken: {}", lease.status().message());
  if (!lease.ok()) return;
  if (!lease->acquired) {
    if (options_.on_follow) options_.on_follow(*lease);
    return;
  }
  store_->SetFence(lease->fence());
  {
    const MutexLock lock(mu_);
    fence_ = lease->fence();
    deadline_ = begin + options_.ttl;
  }
  on_lead_(lease->fence());
}

void Leader::Renew() {
  const TimePoint begin = options_.clock->Now();
  const Result<Lease> lease = store_->RenewLease(fence_, options_.ttl);
  if (lease.ok()) {
    const MutexLock lock(mu_);
    deadline_ = begin + options_.ttl;
    return;
  }
  // Without an answer the lease is this server's until its time has passed.
  if (lease.status().code() == Code::kAborted || !leading()) Lose(lease.status());
}

// The store's fence stays: writes that are still under way are refused.
void Leader::Lose(const Status& why) {
  {
    const MutexLock lock(mu_);
    fence_ = {};
  }
  on_lost_(why);
}

}  // namespace shoal::controller
