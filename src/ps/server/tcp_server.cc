#include "ps/server/tcp_server.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "net/tcp_keep_alive.h"
#include "ps/server/tcp_connection.h"
#include "ps/transport/local_socket.h"
#include "ps/transport/shared_ring.h"
#include "ps/transport/socket.h"
#include "ps/transport/ucx_pipe.h"

namespace shoal::ps {
namespace {

// Connections that have not proven the token: so many from this host, and so many from others.
constexpr size_t kMaxUnproven = 256;
// The pause in accepting after descriptors ran out.
constexpr Duration kAcceptPause = std::chrono::milliseconds(200);
constexpr Duration kTellEvery = std::chrono::minutes(1);
constexpr uint64_t kLoggedEach =
    64;  // refused connections that are logged; later ones at powers of two
constexpr int kTickMs = 100;
constexpr int kEventsATurn = 64;
// For how long a thread that has run out of work looks for more before it sleeps. When looking did
// not pay it looks half as long next time; when it has just fallen asleep and is woken, long again.
constexpr Duration kShortestSpin = std::chrono::microseconds(2);
constexpr int kLooksATurn = 32;
// Sockets that are looked at without being asked for: those that were busy last.
constexpr size_t kMostHot = 4;

}  // namespace

// One thread and its connections.
class TcpLane {
 public:
  TcpLane(ServerCore* core, uint32_t index, UniqueFd listener, UniqueFd local)
      : core_(core),
        index_(index),
        listener_(std::move(listener)),
        local_(std::move(local)),
        mailbox_(std::make_shared<Mailbox>()) {}
  ~TcpLane() {
    {
      const MutexLock lock(mailbox_->mu);
      mailbox_->stop = true;
    }
    if (mailbox_->wake.valid()) mailbox_->Wake();
    if (thread_.joinable()) thread_.join();
    // A child that this process forked may hold copies.
    for (const UniqueFd* fd : {&listener_, &local_}) {
      if (fd->valid()) ::shutdown(fd->get(), SHUT_RDWR);
    }
    // Peers hold the mailbox and it them: nothing may stay in it. They go after the lock: with the
    // last one goes a server's copy, whose connections have locks of their own.
    decltype(mailbox_->flush) flush;
    decltype(mailbox_->adopt) adopt;
    const MutexLock lock(mailbox_->mu);
    flush.swap(mailbox_->flush);
    adopt.swap(mailbox_->adopt);
  }

  Status Start(std::vector<std::shared_ptr<Mailbox>> mailboxes) {
    mailboxes_ = std::move(mailboxes);
    epoll_.Reset(::epoll_create1(EPOLL_CLOEXEC));
    mailbox_->wake.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!epoll_.valid() || !mailbox_->wake.valid()) return ErrnoStatus(errno, "epoll");
    TRY(Watch(mailbox_->wake.get(), &mailbox_, EPOLLIN));
    if (listener_.valid()) TRY(Watch(listener_.get(), &listener_, EPOLLIN));
    if (local_.valid()) TRY(Watch(local_.get(), &local_, EPOLLIN));
    thread_ = std::thread([this] { Run(); });
    return Status::Ok();
  }
  const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

 private:
  struct Entry {
    std::shared_ptr<TcpConnection> peer;
    uint32_t events = 0;
    net::PeerLivenessCheck silence = {};
  };

  Status Watch(int fd, void* what, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = what;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return ErrnoStatus(errno, "epoll_ctl");
    }
    return Status::Ok();
  }

  void Run() {
    std::array<epoll_event, kEventsATurn> events;
    bool ticking = false;
    TimePoint next_tick{}, next_look{};
    for (;;) {
      const bool spinning = Spin();
      const bool asleep = !spinning && FallAsleep();
      const bool timed =
          ticking || HasUnproven() || Paused() || (index_ == 0 && core_->options().index == 0);
      const int n = ::epoll_wait(epoll_.get(), events.data(), kEventsATurn,
                                 asleep ? Timeout(timed, ticking) : 0);
      const TimePoint now = RealClock::Get()->Now();
      if (asleep) WakeUp(now);
      if (n > 0) {
        busy_ = now;
        hot_.clear();
      }
      for (int i = 0; i < n; ++i) {
        void* what = events[static_cast<size_t>(i)].data.ptr;
        if (what == &mailbox_) {
          if (!ReadMail()) return;
        } else if (what == &listener_) {
          Accept(listener_.get());
        } else if (what == &local_) {
          Accept(local_.get());
        } else {
          Serve(static_cast<TcpConnection*>(what), events[static_cast<size_t>(i)].events);
        }
      }
      closed_.clear();
      if (now >= next_look) {
        next_look = now + net::kLivenessCheckInterval;
        CloseSilent(now);
      }
      if (now < next_tick) continue;
      next_tick = now + std::chrono::milliseconds(kTickMs);
      if (index_ == 0) ticking = core_->Tick();
      if (HasUnproven()) CloseSlowStrangers(now);
      if (Paused() && now >= accept_again_) {
        accept_again_ = {};
        WatchListeners(EPOLLIN);
      }
    }
  }

  // A few looks at the rings and the sockets that were busy last. False: nothing has come for so
  // long that the thread may sleep.
  bool Spin() {
    if (rings_.empty() && hot_.empty()) return false;
    for (int look = 0; look < kLooksATurn; ++look) {
      bool some = false;
      for (size_t i = 0; i < rings_.size(); ++i) some |= LookAt(rings_[i]);
      for (size_t i = 0; i < hot_.size(); ++i) some |= LookAt(hot_[i]);
      if (some) found_ = true;
      if (!some) SpinPause();
    }
    const TimePoint now = RealClock::Get()->Now();
    if (found_) {
      found_ = false;
      busy_ = now;
      return true;
    }
    if (now - busy_ >= spin_) return false;
    ::sched_yield();  // to the thread that shares the processor: perhaps the client
    return true;
  }

  bool LookAt(TcpConnection* peer) {
    bool some = false;
    const TcpConnection::NextStep next = peer->Poll(&some);
    if (some || next != TcpConnection::NextStep::kWait) Follow(peer, next);
    return some;
  }

  bool FallAsleep() {
    shortly_ = false;
    for (size_t i = 0; i < rings_.size(); ++i) {
      const TcpConnection::SleepResult asleep = rings_[i]->Sleep();
      shortly_ |= asleep == TcpConnection::SleepResult::kShortly;
      if (asleep != TcpConnection::SleepResult::kNo) continue;
      for (size_t j = 0; j < i; ++j) rings_[j]->Awake();
      busy_ = RealClock::Get()->Now();
      return false;
    }
    fell_asleep_ = RealClock::Get()->Now();
    return true;
  }

  void WakeUp(TimePoint now) {
    for (TcpConnection* peer : rings_) peer->Awake();
    const Duration longest = core_->options().poll_for;
    spin_ = now - fell_asleep_ < longest ? longest : std::max(kShortestSpin, spin_ / 2);
  }

  // Ten times a second while a peer is watched closely, every two seconds on a leader without one,
  // and with connections when the next of their timers is due.
  int Timeout(bool timed, bool ticking) const {
    if (shortly_) return 1;
    if (!timed && peers_.empty()) return -1;
    if (!timed) return static_cast<int>(net::kLivenessCheckInterval / std::chrono::milliseconds(1));
    return ticking || HasUnproven() || Paused() ? kTickMs : 2000;
  }

  bool ReadMail() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(mailbox_->wake.get(), &count, sizeof count);
    std::vector<std::shared_ptr<TcpConnection>> flush, adopt;
    {
      const MutexLock lock(mailbox_->mu);
      if (mailbox_->stop) return false;
      flush.swap(mailbox_->flush);
      adopt.swap(mailbox_->adopt);
    }
    for (auto& peer : adopt) {
      if (Add(peer)) Adopt(peer.get());
    }
    for (const auto& peer : flush) {
      if (peers_.contains(peer.get())) Follow(peer.get(), peer->OnWritable());
    }
    return true;
  }

  void Adopt(TcpConnection* peer) {
    const TcpConnection::NextStep next = peer->Adopt(mailbox_);
    if (peer->polled()) rings_.push_back(peer);
    if (peer->event_fd() >= 0 && !Watch(peer->event_fd(), peer, EPOLLIN).ok()) return Close(peer);
    Follow(peer, next);
  }

  bool Add(const std::shared_ptr<TcpConnection>& peer) {
    if (!Watch(peer->fd(), peer.get(), EPOLLIN).ok()) return false;
    peers_[peer.get()] = {peer, EPOLLIN, {}};
    return true;
  }

  void Accept(int listener) {
    for (;;) {
      UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          PauseAccepting(errno);
        }
        return;
      }
      MakeRoom(listener == local_.get());
      SetNoDelay(fd.get());
      net::SetKeepAlive(fd.get());
      auto peer = std::make_shared<TcpConnection>(std::move(fd), core_, mailbox_);
      if (!Add(peer)) continue;
      unproven_[listener == local_.get()].push_back(peer.get());
      Follow(peer.get(), peer->Open());
    }
  }

  // The kernel goes on telling of connections that wait; until there are descriptors again no
  // connection listens to it.
  void PauseAccepting(int error) {
    const TimePoint now = RealClock::Get()->Now();
    if (!told_.has_value() || now - *told_ >= kTellEvery) {
      told_ = now;
      LogWarning("server {}: cannot accept connections: {}; it tries again, raise `ulimit -n`",
                 core_->options().index, std::strerror(error));
    }
    accept_again_ = now + kAcceptPause;
    WatchListeners(0);
  }

  void WatchListeners(uint32_t events) {
    for (UniqueFd* listener : {&listener_, &local_}) {
      if (!listener->valid()) continue;
      epoll_event event{};
      event.events = events;
      event.data.ptr = listener;
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener->get(), &event);
    }
  }

  // The oldest goes: a client that knows the token has proven it long before, and silent ones do
  // not keep others out.
  void MakeRoom(bool local) {
    std::deque<TcpConnection*>& waiting = unproven_[local];
    if (waiting.size() < kMaxUnproven) return;
    ++core_->refused_connections;
    if (!std::exchange(unproven_full_, true)) {
      LogWarning("server {}: {} connections have not proven the token; the oldest are closed",
                 core_->options().index, waiting.size());
    }
    Close(waiting.front());
  }

  bool Paused() const { return accept_again_ != TimePoint{}; }
  bool HasUnproven() const { return !unproven_[0].empty() || !unproven_[1].empty(); }
  void Proven(TcpConnection* peer) {
    for (auto& waiting : unproven_) std::erase(waiting, peer);
  }

  void Serve(TcpConnection* peer, uint32_t events) {
    if (!peers_.contains(peer)) return;
    TcpConnection::NextStep next = TcpConnection::NextStep::kWait;
    if ((events & EPOLLOUT) != 0) next = peer->OnWritable();
    if (next == TcpConnection::NextStep::kWait && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
      next = peer->OnReadable();
      // A client that is held back is not read, so its end must be noticed here.
      if (next == TcpConnection::NextStep::kWait && (events & (EPOLLHUP | EPOLLERR)) != 0) {
        next = TcpConnection::NextStep::kClose;
      }
    }
    if (peer->joined() && !peer->polled() && hot_.size() < kMostHot) hot_.push_back(peer);
    Follow(peer, next);
  }

  void Follow(TcpConnection* peer, TcpConnection::NextStep next) {
    switch (next) {
      case TcpConnection::NextStep::kWait:
        return Rewatch(peer);
      case TcpConnection::NextStep::kMove:
        return Move(peer);
      case TcpConnection::NextStep::kClose:
        return Close(peer);
    }
  }

  void Rewatch(TcpConnection* peer) {
    Entry& entry = peers_[peer];
    const uint32_t want = (peer->WantsToRead() ? uint32_t{EPOLLIN} : 0u) |
                          (peer->WantsToWrite() ? uint32_t{EPOLLOUT} : 0u);
    if (want == entry.events) return;
    entry.events = want;
    epoll_event event{};
    event.events = want;
    event.data.ptr = peer;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer->fd(), &event);
  }

  void Move(TcpConnection* peer) {
    Proven(peer);
    if (peer->lane() == index_) {
      return Adopt(peer);
    }
    Mailbox& to = *mailboxes_[peer->lane()];
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer->fd(), nullptr);
    {
      const MutexLock lock(to.mu);
      if (!to.stop) to.adopt.push_back(peers_[peer].peer);
    }
    closed_.push_back(std::move(peers_[peer].peer));
    peers_.erase(peer);
    to.Wake();
  }

  void Close(TcpConnection* peer) {
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return;
    if (!peer->joined()) Proven(peer);
    // A client that died is not counted as refused; invalid bytes are.
    if (!peer->end().ok() && peer->end().code() != Code::kUnavailable) {
      TellOfRefusal(*peer, peer->end().message());
    }
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer->fd(), nullptr);
    if (peer->event_fd() >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer->event_fd(), nullptr);
    std::erase(rings_, peer);
    std::erase(hot_, peer);
    peer->Closed();
    closed_.push_back(std::move(found->second.peer));
    peers_.erase(found);
  }

  // Unauthenticated clients must not fill the log: later ones are logged at powers of two. Those
  // that have proven the token are few.
  void TellOfRefusal(const TcpConnection& peer, const std::string& why) {
    ++core_->refused_connections;
    if (!peer.joined() && ++refused_ > kLoggedEach && !std::has_single_bit(refused_)) {
      return;
    }
    LogWarning("server {}: closed the connection from {}: {}", core_->options().index, peer.name(),
               why);
    if (!peer.joined() && refused_ > kLoggedEach) {
      LogWarning("server {}: {} connections without the token have been closed",
                 core_->options().index, refused_);
    }
  }

  void CloseSlowStrangers(TimePoint now) {
    const Duration limit = core_->options().handshake_timeout;
    std::vector<TcpConnection*> slow;
    for (const auto& waiting : unproven_) {
      for (TcpConnection* peer : waiting) {
        if (now - peer->opened() >= limit) slow.push_back(peer);
      }
    }
    for (TcpConnection* peer : slow) {
      TellOfRefusal(*peer, "no proof of the token within " + FormatDuration(limit));
      Close(peer);
    }
  }

  // Of hosts that have vanished; the kernel itself would wait a quarter of an hour.
  void CloseSilent(TimePoint now) {
    std::vector<TcpConnection*> silent;
    for (auto& [peer, entry] : peers_) {
      if (entry.silence.IsSilent(peer->fd(), now)) silent.push_back(peer);
    }
    for (TcpConnection* peer : silent) {
      LogWarning(
          "server {}: closed the connection from {}: its host has acknowledged nothing for {}",
          core_->options().index, peer->name(), FormatDuration(net::kPeerSilence));
      Close(peer);
    }
    closed_.clear();
  }

  ServerCore* const core_;
  const uint32_t index_;
  UniqueFd listener_;  // lane 0's
  UniqueFd local_;     // likewise, for this host
  UniqueFd epoll_;
  std::shared_ptr<Mailbox> mailbox_;
  std::vector<std::shared_ptr<Mailbox>> mailboxes_;  // of all lanes
  std::map<TcpConnection*, Entry> peers_;
  std::vector<std::shared_ptr<TcpConnection>> closed_;  // kept until the turn's events are through
  std::array<std::deque<TcpConnection*>, 2> unproven_;  // of other hosts, of this one; oldest first
  bool unproven_full_ = false;
  uint64_t refused_ = 0;
  std::optional<TimePoint> told_;      // when it last said that descriptors ran out
  TimePoint accept_again_{};           // if it is set, nothing is accepted before
  std::vector<TcpConnection*> rings_;  // of peers_; those over UCX too
  std::vector<TcpConnection*> hot_;    // likewise
  bool found_ = false;
  bool shortly_ = false;  // a connection must be polled soon without a wake-up
  Duration spin_ = kShortestSpin;
  TimePoint busy_{};
  TimePoint fell_asleep_{};
  std::thread thread_;
};

Result<std::unique_ptr<TcpServer>> TcpServer::Start(ServerCore* core) {
  std::unique_ptr<TcpServer> server(new TcpServer);
  UniqueFd listener, local;
  const ServerOptions& options = core->options();
  if (!IsRingSize(options.ring_bytes)) {
    return InvalidArgument(fmt::format("ring_bytes: got {}, expected a power of two from {} to {}",
                                       options.ring_bytes, kMinRingBytes, kMaxRingBytes));
  }
  if (options.ucx) TRY(CheckUcxAvailable());
  if (!options.listen_host.empty()) {
    TRY_ASSIGN(listener, ListenTcp(options.listen_host, options.port, &server->port_));
    if (options.shared_memory) {
      auto beside = ListenLocal(listener.get());
      if (!beside.ok()) LogInfo("server {}: {}", options.index, beside.status().message());
      if (beside.ok()) local = std::move(beside).value();
    }
  }
  std::vector<std::shared_ptr<Mailbox>> mailboxes;
  for (uint32_t lane = 0; lane < core->lanes(); ++lane) {
    server->lanes_.push_back(std::make_unique<TcpLane>(core, lane,
                                                       lane == 0 ? std::move(listener) : UniqueFd(),
                                                       lane == 0 ? std::move(local) : UniqueFd()));
    mailboxes.push_back(server->lanes_.back()->mailbox());
  }
  for (auto& lane : server->lanes_) TRY(lane->Start(mailboxes));
  return server;
}

TcpServer::~TcpServer() = default;

}  // namespace shoal::ps
