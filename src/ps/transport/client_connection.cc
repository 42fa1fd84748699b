#include "ps/transport/client_connection.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/mutex.h"
#include "ps/transport/local_socket.h"

namespace shoal::ps {
namespace {

constexpr int kReadsATurn = 4;

}  // namespace

ClientConnection::ReceiveLock::ReceiveLock(ClientConnection* connection, bool wait)
    : connection_(connection), lock_(connection->rx_mu_, std::defer_lock) {
  if (wait) {
    lock_.lock();
  } else if (!lock_.try_lock()) {
    return;
  }
  connection_->receiver_.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

ClientConnection::ReceiveLock::~ReceiveLock() {
  if (mine()) connection_->receiver_.store(std::thread::id(), std::memory_order_relaxed);
}

ClientConnection::ClientConnection(UniqueFd fd, std::unique_ptr<ByteStream> stream,
                                   std::shared_ptr<ClientLoop> loop)
    : fd_(std::move(fd)),
      loop_(std::move(loop)),
      stream_(std::move(stream)),
      sender_(stream_.get()) {}

void ClientConnection::Start(ConnectionHandler* handler) {
  {
    const ReceiveLock receiving(this, true);
    handler_ = handler;
    ReturnToLoop();  // also handles what came together with the welcome
    if (ended_) return;
  }
  const MutexLock lock(watch_mu_);
  if (closed_) return;
  watched_ = true;
  events_ = Wanted();
  loop_->Add(shared_from_this(), wakes_by(), events_);
  if (wakes_by() != fd_.get()) loop_->Add(shared_from_this(), fd_.get(), EPOLLIN);
}

uint32_t ClientConnection::Wanted() const {
  return loop_reads_ ? EPOLLIN | (sender_.blocked() && !stream_->polled() ? EPOLLOUT : 0u) : 0u;
}

// The socket beside rings is always watched: it carries only wake-ups and the end; and beside UCX
// only the end. Another's is read, and written to when it has room again, by the thread that polls.
void ClientConnection::SetReader(bool loop_reads) {
  if (stream_->in_shared_memory()) return;
  const MutexLock lock(watch_mu_);
  loop_reads_ = loop_reads;
}

void ClientConnection::Rewatch() {
  if (stream_->in_shared_memory()) return;
  const MutexLock lock(watch_mu_);
  if (!watched_) return;
  const uint32_t events = Wanted();
  if (events == events_) return;
  events_ = events;
  loop_->Watch(this, wakes_by(), events);
}

void ClientConnection::Close() {
  const bool first = !closed_.exchange(true);
  // Waits for the thread that handles a frame now, unless it is this one.
  if (receiver_.load(std::memory_order_relaxed) != std::this_thread::get_id()) {
    const MutexLock wait(rx_mu_);
    ended_ = true;
  } else {
    rx_mu_.AssertHeld();
    ended_ = true;
  }
  if (!first) return;
  {
    const MutexLock lock(watch_mu_);
    watched_ = false;
  }
  sender_.Close();  // rows that are not out yet may be gone when this returns
  loop_->Remove(this, fd_.get());
  if (wakes_by() != fd_.get()) loop_->Remove(this, wakes_by());
  // The peer must see the end although this object may live on.
  ::shutdown(fd_.get(), SHUT_RDWR);
}

void ClientConnection::End(const Status& why) {
  if (ended_) return;
  ended_ = true;
  if (handler_ != nullptr) handler_->OnClosed(why);
}

PollResult ClientConnection::Poll() {
  if (closed_.load(std::memory_order_relaxed)) return PollResult::kNever;
  const ReceiveLock receiving(this, false);
  if (!receiving.mine() || handler_ == nullptr) return PollResult::kNothing;  // not started yet
  if (ended_) return PollResult::kNever;
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!polled_) {
    polled_ = true;
    stream_->Awake();
    SetReader(false);
    Rewatch();
    loop_->WatchPollers();
  }
  if (sender_.corked()) Uncork();
  const bool some = Receive();
  if (sender_.blocked() && !ended_) RetrySend();
  return some ? PollResult::kSome : PollResult::kNothing;
}

void ClientConnection::StopPolling() {
  if (closed_) return;
  const ReceiveLock receiving(this, true);
  if (!ended_ && handler_ != nullptr) ReturnToLoop();
}

bool ClientConnection::StillPolled() {
  const ReceiveLock receiving(this, true);
  if (ended_ || !polled_) return false;
  const uint64_t polls = polls_.load(std::memory_order_relaxed);
  if (polls != looked_polls_) {
    looked_polls_ = polls;
    return true;
  }
  ReturnToLoop();
  return polled_;
}

void ClientConnection::CloseIfSilent(TimePoint now) {
  if (closed_ || !silence_.IsSilent(fd_.get(), now)) return;
  const ReceiveLock receiving(this, true);
  End(Unavailable(fmt::format("the server's host has acknowledged nothing for {}",
                              FormatDuration(net::kPeerSilence))));
}

void ClientConnection::ReturnToLoop() {
  polled_ = false;
  SetReader(true);
  if (sender_.corked()) Uncork();
  Receive();  // also what has come already
  if (!StreamSleeps()) {
    // As if a caller polled: the loop's thread checks again in a few milliseconds.
    polled_ = true;
    SetReader(false);
    loop_->WatchPollers();
  }
  if (stream_->in_shared_memory()) RetrySend();
  Rewatch();
}

bool ClientConnection::StreamSleeps() {
  while (!ended_) {
    const SleepResult sleep = stream_->Sleep(false);
    if (sleep != SleepResult::kDataPending) return sleep == SleepResult::kAsleep;
    Receive();
  }
  return true;
}

void ClientConnection::OnEvents(uint32_t events) {
  const ReceiveLock receiving(this, true);
  if (ended_) return;
  if (stream_->polled()) {
    const bool there = DrainWakeUps(fd_.get());
    Receive();
    if (!there) return End(Unavailable("the server closed the connection"));
    if (!polled_ && !ended_) ReturnToLoop();
    return;
  }
  if ((events & EPOLLOUT) != 0) {
    RetrySend();
    Rewatch();
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) Receive();
}

bool ClientConnection::Receive() {
  bool some = false;
  const Status status = ReceiveFrames(&some);
  if (sender_.blocked() && stream_->polled()) RetrySend();
  if (some && sender_.corked()) Uncork();
  if (!status.ok()) End(status);
  return some;
}

void ClientConnection::RetrySend() {
  const bool room = sender_.Retry();
  if (room && !ended_ && handler_ != nullptr) handler_->OnRoom();
}

Status ClientConnection::ReceiveFrames(bool* some) {
  TRY(HandleFrames());  // what came with the handshake
  for (int turn = 0; turn < kReadsATurn && !ended_; ++turn) {
    size_t got = 0;
    TRY(stream_->Receive(ByteStream::kReceiveBytes, &got));
    if (stream_->ended()) return Unavailable("the server closed the connection");
    if (got == 0) break;
    *some = true;
    TRY(HandleFrames());
    stream_->Release();
    if (got < ByteStream::kReceiveBytes) break;
  }
  return Status::Ok();
}

Status ClientConnection::HandleFrames() {
  while (!ended_) {
    FrameHeader head;
    bool there = false;
    TRY(FrameReader::Peek(*stream_, kMaxPayload, &head, &there));
    if (!there) break;
    std::string_view payload;
    TRY(frames_.Take(stream_.get(), head, &payload, &there));
    if (!there) break;
    HandleFrame(head, payload);
    if (stream_->Consume(FrameBytes(head))) stream_->Release();
  }
  return Status::Ok();
}

void ClientConnection::HandleFrame(const FrameHeader& head, std::string_view payload) {
  if (IsSequenced(head.type)) sender_.CountAnswer();
  handler_->OnFrame(head, head.type == FrameType::kRows ? payload : payload.substr(0, head.body));
}

void ClientConnection::Send(const Outgoing& out) {
  if (sender_.Send(out)) Rewatch();
}

void ClientConnection::Uncork() {
  if (sender_.Uncork()) Rewatch();
}

}  // namespace shoal::ps
