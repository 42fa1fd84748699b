#include "api/operator/event_follower.h"

#include <utility>

#include "base/log.h"

namespace shoal::api {
namespace {

constexpr int kEventsOfOneRead = 500;

}  // namespace

Result<std::unique_ptr<EventFollower>> EventFollower::Start(controller::Store* store,
                                                            OnJob on_job) {
  std::unique_ptr<EventFollower> made(new EventFollower(store, std::move(on_job)));
  TRY_ASSIGN(made->position_, store->LastPosition());
  EventFollower* const follower = made.get();
  TRY_ASSIGN(made->watcher_, store->Watch([follower] {
    {
      const MutexLock lock(follower->mu_);
      follower->more_ = true;
    }
    follower->changed_.notify_all();
  }));
  made->thread_ = std::thread([follower] { follower->Run(); });
  return made;
}

EventFollower::~EventFollower() {
  watcher_.reset();
  {
    const MutexLock lock(mu_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void EventFollower::Run() {
  while (Await()) ReadAll();
}

// False at the end.
bool EventFollower::Await() {
  MutexLock lock(mu_);
  changed_.wait(lock, [this]() REQUIRES(mu_) { return ending_ || more_; });
  more_ = false;
  return !ending_;
}

void EventFollower::ReadAll() {
  for (;;) {
    const auto events = store_->ReadAllEvents(position_, kEventsOfOneRead);
    if (!events.ok()) LogWarning("events cannot be read: {}", events.status().message());
    if (!events.ok() || events->empty()) return;  // the next commit tries again
    position_ = events->back().position;
    for (const controller::StoredEvent& event : *events) on_job_(event.job);
  }
}

}  // namespace shoal::api
