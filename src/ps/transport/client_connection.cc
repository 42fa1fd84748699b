#include "ps/transport/client_connection.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/mutex.h"
#include "ps/transport/local_socket.h"
#include "ps/transport/socket.h"
#include "ps/wire/row_frame.h"

namespace shoal::ps {
namespace {

constexpr size_t kReadBytes = 256u << 10;
constexpr size_t kUsualBuffer = 1u << 20;
constexpr int kReadsATurn = 4;
// Rows up to this size are copied behind their header; more stay where they are until they are
// sent.
constexpr size_t kGathered = 16u << 10;
// Queued bytes beyond this are sent without waiting for a batch.
constexpr size_t kEnough = 256u << 10;
// Space that was read is given back to the ring's writer in steps of this size.
constexpr size_t kReleaseBytes = 32u << 10;

}  // namespace

ClientConnection::ReceiveLock::ReceiveLock(ClientConnection* stream, bool wait)
    : stream_(stream), lock_(stream->rx_mu_, std::defer_lock) {
  if (wait) {
    lock_.lock();
  } else if (!lock_.try_lock()) {
    return;
  }
  stream_->receiver_.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

ClientConnection::ReceiveLock::~ReceiveLock() {
  if (mine()) stream_->receiver_.store(std::thread::id(), std::memory_order_relaxed);
}

ClientConnection::ClientConnection(UniqueFd fd, ByteBuffer received,
                                   std::optional<SharedRings> memory, std::unique_ptr<UcxPipe> pipe,
                                   std::shared_ptr<ClientLoop> loop)
    : fd_(std::move(fd)),
      loop_(std::move(loop)),
      memory_(std::move(memory)),
      pipe_(std::move(pipe)),
      in_(std::move(received)) {
  if (pipe_ != nullptr) in_.Consume(in_.size());
  if (!memory_.has_value()) return;
  in_.Consume(in_.size());  // wake-ups
  reader_.emplace(*memory_, SharedRings::kToClient);
  writer_.emplace(*memory_, SharedRings::kToServer);
}

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
  if (pipe_ != nullptr) loop_->Add(shared_from_this(), fd_.get(), EPOLLIN);
}

uint32_t ClientConnection::Wanted() const {
  return reads_here_ ? EPOLLIN | (blocked_ && plain() ? EPOLLOUT : 0u) : 0u;
}

// A ring's socket is always watched: it carries only wake-ups and the end; and beside a pipe only
// the end. Another's is read, and written to when it has room again, by the thread that polls.
void ClientConnection::Rewatch() {
  const MutexLock lock(watch_mu_);
  if (!watched_ || memory_.has_value()) return;
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
  {
    // Rows that are not out yet may be gone when this returns.
    const MutexLock lock(out_mu_);
    out_.Clear();
    shut_ = true;
  }
  loop_->Remove(this, fd_.get());
  if (pipe_ != nullptr) loop_->Remove(this, pipe_->event_fd());
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
    if (reader_.has_value()) {
      reader_->ClearSleeping();
    } else {
      {
        const MutexLock lock(watch_mu_);
        reads_here_ = false;
      }
      Rewatch();
    }
    loop_->WatchPollers();
  }
  if (corked_) Uncork();
  const bool some = Receive();
  if (blocked_.load(std::memory_order_relaxed) && !ended_) RetrySend();
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
  if (!reader_.has_value()) {
    {
      const MutexLock lock(watch_mu_);
      reads_here_ = true;
    }
    if (corked_) Uncork();
    Receive();  // also what is in the buffer already
    if (pipe_ != nullptr && !PipeSleeps()) {
      // As if a caller polled: the loop's thread checks again in a few milliseconds.
      polled_ = true;
      const MutexLock lock(watch_mu_);
      reads_here_ = false;
      loop_->WatchPollers();
    }
    return Rewatch();
  }
  do {
    Receive();
  } while (!ended_ && !reader_->Sleep());
  RetrySend();
}

bool ClientConnection::PipeSleeps() {
  while (!ended_) {
    const UcxSleep sleep = pipe_->Sleep(false);
    if (sleep != UcxSleep::kDataPending) return sleep == UcxSleep::kAsleep;
    Receive();
  }
  return true;
}

void ClientConnection::OnEvents(uint32_t events) {
  const ReceiveLock receiving(this, true);
  if (ended_) return;
  if (!plain()) {
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
  const Status status = reader_.has_value() ? ReceiveRing(&some)
                        : pipe_ != nullptr  ? ReceivePipe(&some)
                                            : ReceiveStream(&some);
  if (blocked_.load(std::memory_order_relaxed) && !plain()) RetrySend();
  if (some && corked_) Uncork();
  if (!status.ok()) End(status);
  return some;
}

void ClientConnection::RetrySend() {
  if (blocked_) {
    const MutexLock lock(out_mu_);
    blocked_ = false;
    Drain();
  }
  if (!wants_room_) return;
  bool room = false;
  {
    const MutexLock lock(out_mu_);
    room = out_.empty() && (!writer_.has_value() || writer_->AwaitRoom());
    if (room) wants_room_ = false;
  }
  if (room && !ended_ && handler_ != nullptr) handler_->OnRoom();
}

// --- In ---

void ClientConnection::HandleFrame(const FrameHeader& head, std::string_view payload) {
  if (IsSequenced(head.type)) answered_ = answered_ + 1;
  handler_->OnFrame(head, head.type == FrameType::kRows ? payload : payload.substr(0, head.body));
}

Status ClientConnection::ReceiveStream(bool* some) {
  TRY(HandleFrames());
  for (int turn = 0; turn < kReadsATurn && !ended_; ++turn) {
    char* to = in_.Reserve(kReadBytes);
    const size_t room = std::min(in_.room(), kReadBytes);
    const long got = ReceiveSome(fd_.get(), to, room);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got < 0) return ErrnoStatus(errno, "the connection broke");
    if (got == 0) return Unavailable("the server closed the connection");
    *some = true;
    in_.Commit(static_cast<size_t>(got));
    TRY(HandleFrames());
    if (static_cast<size_t>(got) < room) break;
  }
  in_.ShrinkTo(kUsualBuffer);
  return Status::Ok();
}

Status ClientConnection::ReceivePipe(bool* some) {
  for (int turn = 0; turn < kReadsATurn && !ended_; ++turn) {
    const size_t got = pipe_->Receive(in_.Reserve(kReadBytes), kReadBytes);
    TRY(pipe_->status());
    if (got == 0) break;
    *some = true;
    in_.Commit(got);
    TRY(HandleFrames());
  }
  in_.ShrinkTo(kUsualBuffer);
  return Status::Ok();
}

Status ClientConnection::HandleFrames() {
  while (in_.size() >= sizeof(FrameHeader) && !ended_) {
    FrameHeader head;
    TRY(ReadHeader(in_.view().substr(0, sizeof head), kMaxPayload, &head));
    const size_t whole = sizeof head + head.payload;
    if (in_.size() < whole) {
      in_.Reserve(whole - in_.size());
      break;
    }
    const std::string_view payload = in_.view().substr(sizeof head, head.payload);
    // On one host there is nothing between the ends that could change a row.
    if (!reader_.has_value() || head.type != FrameType::kRows) TRY(CheckPayload(head, payload));
    HandleFrame(head, payload);
    in_.Consume(whole);
  }
  return Status::Ok();
}

Status ClientConnection::ReceiveRing(bool* some) {
  if (!reader_->CheckForData()) return Status::Ok();
  if (reader_->broken()) return DataLoss("the server broke the shared memory");
  *some = true;
  TRY(HandleRingFrames());
  if (reader_->Release()) WakeOtherEnd(fd_.get());
  return Status::Ok();
}

// Frames are handled where they lie, or gathered in in_ if they are too long for that.
Status ClientConnection::HandleRingFrames() {
  for (size_t taken = 0; !ended_;) {
    const std::string_view have = reader_->view();
    FrameHeader head;
    if (!in_.empty()) {
      TRY(ReadHeader(in_.view().substr(0, sizeof head), kMaxPayload, &head));
      const size_t step = std::min(sizeof head + head.payload - in_.size(), have.size());
      in_.Append(have.data(), step);
      reader_->Consume(step);
      TRY(HandleFrames());
      if (!in_.empty()) return Status::Ok();
      in_.ShrinkTo(kUsualBuffer);
      continue;
    }
    if (have.size() < sizeof head) return Status::Ok();
    TRY(ReadHeader(have.substr(0, sizeof head), kMaxPayload, &head));
    const size_t whole = sizeof head + head.payload;
    if (whole > kRingFrame) {
      in_.Reserve(whole);
      in_.Append(have.data(), sizeof head);
      reader_->Consume(sizeof head);
      continue;
    }
    if (have.size() < whole) return Status::Ok();
    std::string_view payload = have.substr(sizeof head, head.payload);
    if (head.type != FrameType::kRows) {
      copied_.assign(payload);
      payload = copied_;
      TRY(CheckPayload(head, payload));
    }
    HandleFrame(head, payload);
    reader_->Consume(whole);
    taken += whole;
    if (taken < kReleaseBytes) continue;
    taken = 0;
    if (reader_->Release()) WakeOtherEnd(fd_.get());
  }
  return Status::Ok();
}

// --- Out ---

bool ClientConnection::Takes(size_t bytes) {
  const MutexLock lock(out_mu_);
  if (!writer_.has_value()) {
    wants_room_ = blocked_.load();
    return !blocked_;
  }
  const size_t needed = std::min(bytes, kRingFrame);
  if (out_.empty() && writer_->Room(needed) >= needed) return true;
  wants_room_ = true;
  return false;
}

void ClientConnection::Send(const Outgoing& out) {
  {
    const MutexLock lock(out_mu_);
    if (shut_) return;
    asked_ += IsSequenced(out.head.type);
    if (out.rows == nullptr) {
      scratch_.clear();
      AppendControlFrame(out.head, out.body, &scratch_);
      out_.Append(scratch_.data(), scratch_.size());
    } else if (!writer_.has_value()) {
      QueueRows(out.head, *out.rows);
      if (MayWait()) return;
    } else if (WriteToRing(out.head, *out.rows)) {
      return;
    } else {
      QueueRows(out.head, *out.rows);
    }
    if (blocked_) return;
    Drain();
    if (!blocked_) return;
  }
  Rewatch();
}

// Whether an answer is certain to come to something that is out already. Its receiver first counts
// it and then looks whether something is corked, here it is the other way round: one of the two
// sees the other's.
bool ClientConnection::MayWait() {
  if (blocked_ || out_.size() >= kEnough) return false;
  corked_ = true;
  return sent_ != answered_;
}

void ClientConnection::Uncork() {
  {
    const MutexLock lock(out_mu_);
    if (blocked_) return;
    Drain();
    if (!blocked_) return;
  }
  Rewatch();
}

bool ClientConnection::WriteToRing(FrameHeader head, const RowChunk& rows) {
  const size_t whole = SizeRowFrame(rows, &head);
  if (!out_.empty() || whole > kRingFrame || writer_->Room(whole) < whole) return false;
  WriteRowFrame(head, rows, false, writer_->At());
  writer_->Advance(whole);
  if (writer_->Publish()) WakeOtherEnd(fd_.get());
  return true;
}

// Many rows that lie one after the other go to a socket from where they are.
void ClientConnection::QueueRows(FrameHeader head, const RowChunk& rows) {
  const size_t whole = SizeRowFrame(rows, &head);
  const size_t values = ValueBytes(head);
  if (writer_.has_value() || values <= kGathered || !IsContiguous(rows)) {
    WriteRowFrame(head, rows, !writer_.has_value(), out_.Reserve(whole));
    return out_.Commit(whole);
  }
  WriteRowFrameHead(head, rows, out_.Reserve(whole - values));
  out_.Commit(whole - values);
  out_.Refer(rows.deltas[rows.first], values);
}

void ClientConnection::Drain() {
  if (writer_.has_value()) {
    DrainToRing();
  } else {
    sent_ = asked_;
    corked_ = false;
    blocked_ = pipe_ != nullptr ? !out_.Send(pipe_.get()) : !out_.Send(fd_.get());
  }
  out_.ShrinkTo(kUsualBuffer);
}

void ClientConnection::DrainToRing() {
  while (!out_.empty()) {
    const size_t step = std::min(out_.size(), writer_->Room(std::min(out_.size(), kRingFrame)));
    if (writer_->broken()) {
      // Ends the connection where it is read.
      ::shutdown(fd_.get(), SHUT_RDWR);
      return out_.Clear();
    }
    std::memcpy(writer_->At(), out_.data(), step);
    writer_->Advance(step);
    out_.Consume(step);
    if (writer_->Publish()) WakeOtherEnd(fd_.get());
    if (step == 0 && !writer_->AwaitRoom()) {
      blocked_ = true;
      return;
    }
  }
}

}  // namespace shoal::ps
