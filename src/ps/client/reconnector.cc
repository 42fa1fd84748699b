#include "ps/client/reconnector.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/mutex.h"
#include "ps/client/client_core.h"

namespace shoal::ps {
namespace {

constexpr Duration kFirstBackoff = std::chrono::milliseconds(5);
constexpr Duration kLongestBackoff = std::chrono::milliseconds(200);
constexpr Duration kGoneAfter = std::chrono::milliseconds(500);
constexpr Duration kLookAtMembers = std::chrono::seconds(1);

}  // namespace

void Reconnector::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Reconnector::Stop() {
  {
    const MutexLock lock(mu_);
    stop_ = true;
  }
  lost_cv_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Reconnector::WaitForStop(Duration time) {
  if (core_->options().interrupted && core_->options().interrupted()) return true;
  MutexLock lock(mu_);
  return lost_cv_.wait_for(lock, time, [this]() REQUIRES(mu_) { return stop_; });
}

void Reconnector::OnLost(Channel* channel) {
  {
    // Within the lock: once it is released, the client may be destroyed.
    const MutexLock lock(mu_);
    lost_.emplace(channel, RealClock::Get()->Now());
    lost_cv_.notify_all();
  }
}

void Reconnector::DisconnectOldAddresses() {
  const MemberView view = core_->CurrentMembers();
  for (const auto& channel : core_->channels()) {
    const std::string address = core_->dialer().PresentAddress(view, channel->server());
    if (!address.empty()) channel->DisconnectUnlessAt(address);
  }
}

void Reconnector::Run() {
  Duration backoff = kFirstBackoff;
  for (;;) {
    std::map<Channel*, TimePoint> lost;
    {
      MutexLock lock(mu_);
      const bool some = lost_cv_.wait_for(
          lock, kLookAtMembers, [this]() REQUIRES(mu_) { return stop_ || !lost_.empty(); });
      if (stop_) return;
      lost = lost_;
      lock.unlock();
      if (!some) DisconnectOldAddresses();
      if (!some) continue;
    }
    bool all = true;
    for (const auto& [channel, since] : lost) {
      {
        // Out of the list before it is up: its next loss must not be overlooked.
        const MutexLock lock(mu_);
        if (stop_) return;
        lost_.erase(channel);
      }
      if (Reconnect(channel, since)) continue;
      const MutexLock lock(mu_);
      lost_.emplace(channel, since);
      all = false;
    }
    backoff = all ? kFirstBackoff : std::min(backoff * 2, kLongestBackoff);
    if (all) continue;
    MutexLock lock(mu_);
    lost_cv_.wait_for(lock, backoff, [this]() REQUIRES(mu_) { return stop_; });
  }
}

// True when there is nothing more to do for this channel.
bool Reconnector::Reconnect(Channel* channel, TimePoint lost_at) {
  if (channel->suspended()) return true;
  std::string address;
  auto dialled = core_->dialer().Dial(
      {channel->server(), channel->lane(), channel->first_unanswered(), core_->worker().clock()},
      &address, lost_at + core_->options().reconnect_timeout - RealClock::Get()->Now());
  Status status = dialled.status();
  if (dialled.ok()) status = core_->CheckWelcome(channel->server(), dialled->welcome).With(address);
  if (status.ok()) {
    const Welcome welcome = dialled->welcome;
    // The callback runs before the answers: a caller that sees an answer of the new instance can
    // know it.
    core_->NoteInstance(channel->server(), welcome);
    channel->Resume(address, std::move(dialled).value(), core_->TableSpecs());
    if (welcome.ownership != core_->router().Known().version())
      core_->redirector().OnShardsMoved(channel->server());
    return true;
  }
  const Duration away = RealClock::Get()->Now() - lost_at;
  // Perhaps it has left and we had not let go of it yet.
  if (away > kGoneAfter && core_->IsUnneeded(channel->server()))
    core_->redirector().RequestCleanup();
  if (IsTransient(status) && away < core_->options().reconnect_timeout) return false;
  channel->Fail(Status(IsTransient(status) ? Code::kUnavailable : status.code(),
                       fmt::format("server {} has been away for {}: {}", channel->server(),
                                   FormatDuration(away), status.message())));
  return true;
}

}  // namespace shoal::ps
