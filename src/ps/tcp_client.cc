// The TCP transport at the client: frames are built in the sender's thread and given to the kernel
// there; one thread receives for all links and sends what the kernel did not take at once.
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "ps/byte_buffer.h"
#include "ps/handshake.h"
#include "ps/row_frame.h"
#include "ps/socket.h"
#include "ps/transport.h"

namespace shoal::ps {
namespace {

constexpr size_t kReadBytes = 256u << 10;
constexpr size_t kUsualBuffer = 1u << 20;
constexpr int kReadsATurn = 4;
constexpr int kEventsATurn = 64;

class ClientLoop;

class TcpLink final : public Link {
 public:
  TcpLink(UniqueFd fd, ByteBuffer received, std::shared_ptr<ClientLoop> loop)
      : fd_(std::move(fd)), in_(std::move(received)), loop_(std::move(loop)) {}
  ~TcpLink() override { Close(); }

  void Start(LinkHandler* handler) override;
  void Send(const Outgoing& out) override;
  bool SavesBytes() const override { return true; }
  void FlushReplies() override {}
  void Close() override;

  // The loop's thread. OK or why the link is at its end.
  Status OnReadable();
  Status OnWritable(bool* blocked);
  int fd() const { return fd_.get(); }
  LinkHandler* handler() const { return handler_; }
  // Frames that came together with the welcome.
  Status HandleFrames();

 private:
  void AppendRows(FrameHeader head, const RowPart& rows);
  bool SendContiguous(FrameHeader head, const RowPart& rows);
  void Drain();

  UniqueFd fd_;
  ByteBuffer in_;  // the loop's thread's
  const std::shared_ptr<ClientLoop> loop_;
  LinkHandler* handler_ = nullptr;
  std::mutex out_mu_;
  ByteBuffer out_;        // guarded by out_mu_
  bool blocked_ = false;  // guarded by out_mu_: the loop waits until the socket is writable
  std::string scratch_;   // guarded by out_mu_
};

// The receiving thread.
class ClientLoop {
 public:
  static Result<std::shared_ptr<ClientLoop>> Start() {
    auto loop = std::make_shared<ClientLoop>();
    loop->epoll_.Reset(::epoll_create1(EPOLL_CLOEXEC));
    loop->wake_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_event event{};
    event.events = EPOLLIN;
    if (!loop->epoll_.valid() || !loop->wake_.valid() ||
        ::epoll_ctl(loop->epoll_.get(), EPOLL_CTL_ADD, loop->wake_.get(), &event) != 0) {
      return ErrnoStatus(errno, "epoll");
    }
    loop->thread_ = std::thread([raw = loop.get()] { raw->Run(); });
    return loop;
  }
  void Stop() {
    stop_ = true;
    Wake();
    if (thread_.joinable()) thread_.join();
  }

  void Add(TcpLink* link) {
    std::lock_guard lock(mu_);
    links_.insert(link);
    fresh_.push_back(link);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = link;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, link->fd(), &event);
    Wake();
  }
  void WantWrite(TcpLink* link, bool want) {
    epoll_event event{};
    event.events = want ? uint32_t{EPOLLIN | EPOLLOUT} : uint32_t{EPOLLIN};
    event.data.ptr = link;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link->fd(), &event);
  }
  // Afterwards no call for this link runs or comes, except the one that it was called from.
  void Remove(TcpLink* link) {
    std::unique_lock lock(mu_);
    if (links_.erase(link) == 0) return;
    std::erase(fresh_, link);
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, link->fd(), nullptr);
    if (std::this_thread::get_id() == thread_.get_id()) return;
    idle_.wait(lock, [&] { return busy_ != link; });
  }

 private:
  void Wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  }
  bool Begin(TcpLink* link) {
    std::lock_guard lock(mu_);
    if (!links_.contains(link)) return false;
    busy_ = link;
    return true;
  }
  // The link may be gone by now.
  void End() {
    std::lock_guard lock(mu_);
    busy_ = nullptr;
    idle_.notify_all();
  }
  bool Alive(TcpLink* link) {
    std::lock_guard lock(mu_);
    return links_.contains(link);
  }

  void Run() {
    std::array<epoll_event, kEventsATurn> events;
    while (!stop_) {
      const int n = ::epoll_wait(epoll_.get(), events.data(), kEventsATurn, -1);
      for (int i = 0; i < n && !stop_; ++i) {
        const epoll_event& event = events[static_cast<size_t>(i)];
        if (event.data.ptr == nullptr) {
          ReadWake();
        } else {
          Serve(static_cast<TcpLink*>(event.data.ptr), event.events);
        }
      }
    }
  }
  void ReadWake() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
    std::vector<TcpLink*> fresh;
    {
      std::lock_guard lock(mu_);
      fresh.swap(fresh_);
    }
    for (TcpLink* link : fresh) Serve(link, 0);
  }
  // Events 0: look at what came with the welcome.
  void Serve(TcpLink* link, uint32_t events) {
    if (!Begin(link)) return;
    Status status = events == 0 ? link->HandleFrames() : Status::Ok();
    if (status.ok() && (events & EPOLLOUT) != 0) {
      bool blocked = false;
      status = link->OnWritable(&blocked);
      if (status.ok() && !blocked) WantWrite(link, false);
    }
    if (status.ok() && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) status = link->OnReadable();
    // The handler may have closed it meanwhile.
    if (!status.ok() && Alive(link)) link->handler()->OnClosed(status);
    End();
  }

  UniqueFd epoll_;
  UniqueFd wake_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::mutex mu_;
  std::condition_variable idle_;
  std::set<TcpLink*> links_;     // guarded by mu_
  std::vector<TcpLink*> fresh_;  // guarded by mu_
  TcpLink* busy_ = nullptr;      // guarded by mu_
};

void TcpLink::Start(LinkHandler* handler) {
  handler_ = handler;
  loop_->Add(this);
  std::lock_guard lock(out_mu_);
  if (blocked_) loop_->WantWrite(this, true);  // sent to before it was watched
}

void TcpLink::Close() {
  loop_->Remove(this);
  // The peer must see the end although this object may live on.
  if (fd_.valid()) ::shutdown(fd_.get(), SHUT_RDWR);
}

Status TcpLink::OnReadable() {
  for (int turn = 0; turn < kReadsATurn; ++turn) {
    char* to = in_.Reserve(kReadBytes);
    const size_t room = std::min(in_.room(), kReadBytes);
    const long got = ReceiveSome(fd_.get(), to, room);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got < 0) return ErrnoStatus(errno, "the connection broke");
    if (got == 0) return Unavailable("the server closed the connection");
    in_.Commit(static_cast<size_t>(got));
    TRY(HandleFrames());
    if (static_cast<size_t>(got) < room) break;
  }
  in_.ShrinkTo(kUsualBuffer);
  return Status::Ok();
}

Status TcpLink::HandleFrames() {
  while (in_.size() >= sizeof(FrameHeader)) {
    FrameHeader head;
    TRY(ReadHeader(in_.view().substr(0, sizeof head), kMaxPayload, &head));
    const size_t whole = sizeof head + head.payload;
    if (in_.size() < whole) {
      in_.Reserve(whole - in_.size());
      break;
    }
    const std::string_view payload = in_.view().substr(sizeof head, head.payload);
    TRY(CheckPayload(head, payload));
    handler_->OnFrame(head, head.type == FrameType::kRows ? payload : payload.substr(0, head.body));
    in_.Consume(whole);
  }
  return Status::Ok();
}

Status TcpLink::OnWritable(bool* blocked) {
  std::lock_guard lock(out_mu_);
  blocked_ = false;
  Drain();
  *blocked = blocked_;
  return Status::Ok();
}

// Under out_mu_. Errors show up as the connection's end when it is read.
void TcpLink::Drain() {
  while (!out_.empty() && !blocked_) {
    const long sent = SendSome(fd_.get(), out_.data(), out_.size());
    if (sent < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        blocked_ = true;
      } else {
        out_.Consume(out_.size());
      }
      break;
    }
    out_.Consume(static_cast<size_t>(sent));
  }
  out_.ShrinkTo(kUsualBuffer);
}

void TcpLink::AppendRows(FrameHeader head, const RowPart& rows) {
  const size_t bytes = SizeRowFrame(rows, &head);
  WriteRowFrame(head, rows, true, out_.Reserve(bytes));
  out_.Commit(bytes);
}

// Rows that lie one after the other go to the kernel from where they are. False: not such rows, or
// something is queued before them.
bool TcpLink::SendContiguous(FrameHeader head, const RowPart& rows) {
  if (!out_.empty() || blocked_ || !IsContiguous(rows)) return false;
  const size_t values = ValueBytes(head);
  char* const at = out_.Reserve(SizeRowFrame(rows, &head) - values);
  const char* from = reinterpret_cast<const char*>(rows.deltas[rows.first]);
  const auto front = static_cast<size_t>(WriteRowFrameHead(head, rows, at) - at);
  std::array<iovec, 2> pieces = {iovec{at, front}, iovec{const_cast<char*>(from), values}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  const ssize_t result = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  size_t sent = result > 0 ? static_cast<size_t>(result) : 0;
  // What the kernel did not take waits in the queue.
  const size_t of_head = std::min(sent, pieces[0].iov_len);
  out_.Commit(pieces[0].iov_len);
  out_.Consume(of_head);
  sent -= of_head;
  out_.Append(from + sent, values - sent);
  return true;
}

void TcpLink::Send(const Outgoing& out) {
  std::lock_guard lock(out_mu_);
  if (out.rows == nullptr) {
    scratch_.clear();
    AppendControlFrame(out.head, out.body, &scratch_);
    out_.Append(scratch_.data(), scratch_.size());
  } else if (!SendContiguous(out.head, *out.rows)) {
    AppendRows(out.head, *out.rows);
  }
  if (blocked_) return;
  Drain();
  if (blocked_) loop_->WantWrite(this, true);
}

// One frame of the handshake, blocking until the deadline.
Result<std::string> AwaitFrame(int fd, ByteBuffer* in, FrameType type, TimePoint deadline) {
  FrameHeader head;
  for (;;) {
    if (in->size() >= sizeof head) {
      TRY(ReadHeader(in->view().substr(0, sizeof head), kMaxHandshakePayload, &head));
      if (in->size() >= sizeof head + head.payload) break;
    }
    TRY(WaitSocket(fd, POLLIN, deadline));
    char* to = in->Reserve(kMaxHandshakePayload);
    const long got = ReceiveSome(fd, to, in->room());
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) continue;
    if (got <= 0) return Unavailable("the server closed the connection during the handshake");
    in->Commit(static_cast<size_t>(got));
  }
  const std::string payload(in->view().substr(sizeof head, head.payload));
  TRY(CheckPayload(head, payload));
  in->Consume(sizeof head + head.payload);
  const std::string body = payload.substr(0, head.body);
  if (head.type == FrameType::kError) return DecodeError(body);
  if (head.type != type) return DataLoss("the server sent an unexpected frame");
  return body;
}

class TcpTransport final : public Transport {
 public:
  explicit TcpTransport(std::string token) : token_(std::move(token)) {}
  ~TcpTransport() override {
    if (loop_ != nullptr) loop_->Stop();
  }

  Result<Dialled> Dial(const std::string& address, const Hello& hello, Duration timeout) override {
    auto dialled = DialOnce(address, hello, timeout);
    if (!dialled.ok()) return dialled.status().With(address);
    return dialled;
  }

 private:
  Result<Dialled> DialOnce(const std::string& address, const Hello& hello, Duration timeout) {
    const TimePoint deadline = RealClock::Get()->Now() + timeout;
    TRY(EnsureLoop());
    TRY_ASSIGN(UniqueFd fd, ConnectTcp(address, timeout));
    ByteBuffer in;
    Nonces nonces;
    nonces.client = NewNonce();
    TRY_ASSIGN(const auto challenge, AwaitFrame(fd.get(), &in, FrameType::kChallenge, deadline));
    TRY(DecodeChallenge(challenge, &nonces.server));
    FrameHeader head;
    head.type = FrameType::kProof;
    std::string proof;
    AppendControlFrame(head, EncodeProof(token_, nonces, hello), &proof);
    if (SendSome(fd.get(), proof.data(), proof.size()) != static_cast<long>(proof.size())) {
      return Unavailable("the server does not take the handshake");
    }
    TRY_ASSIGN(const auto answer, AwaitFrame(fd.get(), &in, FrameType::kWelcome, deadline));
    Dialled dialled;
    TRY(DecodeWelcome(answer, token_, nonces, &dialled.welcome));
    dialled.link = std::make_unique<TcpLink>(std::move(fd), std::move(in), loop_);
    return dialled;
  }
  Status EnsureLoop() {
    std::lock_guard lock(mu_);
    if (loop_ != nullptr) return Status::Ok();
    TRY_ASSIGN(loop_, ClientLoop::Start());
    return Status::Ok();
  }

  const std::string token_;
  std::mutex mu_;
  std::shared_ptr<ClientLoop> loop_;  // guarded by mu_
};

}  // namespace

std::unique_ptr<Transport> MakeTcpTransport(std::string token) {
  return std::make_unique<TcpTransport>(std::move(token));
}

}  // namespace shoal::ps
