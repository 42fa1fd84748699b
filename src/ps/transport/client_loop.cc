#include "ps/transport/client_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "base/mutex.h"
#include "net/tcp_keep_alive.h"
#include "ps/transport/client_connection.h"

namespace shoal::ps {
namespace {

constexpr int kEventsATurn = 64;
constexpr long kLeaseNs = 2'000'000;
constexpr int kLookMs =
    static_cast<int>(net::kLivenessCheckInterval / std::chrono::milliseconds(1));

void Take(int fd) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd, &count, sizeof count);
}

}  // namespace

Result<std::shared_ptr<ClientLoop>> ClientLoop::Start() {
  auto loop = std::make_shared<ClientLoop>();
  loop->epoll_.Reset(::epoll_create1(EPOLL_CLOEXEC));
  loop->wake_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  loop->timer_.Reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  epoll_event wake{}, timer{};
  wake.events = timer.events = EPOLLIN;
  timer.data.ptr = &loop->timer_;
  if (!loop->epoll_.valid() || !loop->wake_.valid() || !loop->timer_.valid() ||
      ::epoll_ctl(loop->epoll_.get(), EPOLL_CTL_ADD, loop->wake_.get(), &wake) != 0 ||
      ::epoll_ctl(loop->epoll_.get(), EPOLL_CTL_ADD, loop->timer_.get(), &timer) != 0) {
    return ErrnoStatus(errno, "epoll");
  }
  loop->thread_ = std::thread([raw = loop.get()] { raw->Run(); });
  return loop;
}

ClientLoop::~ClientLoop() { Stop(); }

void ClientLoop::Stop() {
  stop_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

// Sets a timer rather than waking the thread, which would take a processor, perhaps the server's,
// in the middle of a round trip.
void ClientLoop::WatchPollers() {
  if (!watching_pollers_.exchange(true)) Arm();
}

void ClientLoop::Arm() {
  itimerspec when{};
  when.it_value.tv_nsec = kLeaseNs;
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void ClientLoop::Add(const std::shared_ptr<ClientConnection>& stream, int fd, uint32_t events) {
  const MutexLock lock(mu_);
  streams_[stream.get()] = stream;
  epoll_event event{};
  event.events = events;
  event.data.ptr = stream.get();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void ClientLoop::Watch(ClientConnection* stream, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = stream;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void ClientLoop::Remove(ClientConnection* stream, int fd) {
  std::shared_ptr<ClientConnection> last;  // let go of without the lock
  const MutexLock lock(mu_);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  last = std::move(found->second);
  streams_.erase(found);
}

void ClientLoop::Serve(ClientConnection* stream, uint32_t events) {
  std::shared_ptr<ClientConnection> alive;
  {
    const MutexLock lock(mu_);
    const auto found = streams_.find(stream);
    if (found != streams_.end()) alive = found->second;
  }
  if (alive != nullptr) alive->OnEvents(events);
}

std::vector<std::shared_ptr<ClientConnection>> ClientLoop::All() {
  std::vector<std::shared_ptr<ClientConnection>> all;
  const MutexLock lock(mu_);
  for (const auto& [raw, stream] : streams_) all.push_back(stream);
  return all;
}

bool ClientLoop::CheckPollers() {
  bool attended = false;
  for (const auto& stream : All()) attended |= stream->StillPolled();
  return attended;
}

void ClientLoop::Run() {
  std::array<epoll_event, kEventsATurn> events;
  TimePoint next_look = RealClock::Get()->Now() + net::kLivenessCheckInterval;
  while (!stop_) {
    const int n = ::epoll_wait(epoll_.get(), events.data(), kEventsATurn, kLookMs);
    bool look = false;
    for (int i = 0; i < n && !stop_; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.ptr == nullptr) {
        Take(wake_.get());
      } else if (event.data.ptr == &timer_) {
        Take(timer_.get());
        look = true;
      } else {
        Serve(static_cast<ClientConnection*>(event.data.ptr), event.events);
      }
    }
    if (stop_) continue;
    if (const TimePoint now = RealClock::Get()->Now(); now >= next_look) {
      next_look = now + net::kLivenessCheckInterval;
      for (const auto& stream : All()) stream->CloseIfSilent(now);
    }
    if (!look) continue;
    // The flag is cleared before the check: a caller that begins to poll meanwhile sets the timer
    // again.
    watching_pollers_ = false;
    if (CheckPollers()) WatchPollers();
  }
}

}  // namespace shoal::ps
