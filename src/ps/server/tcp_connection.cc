#include "ps/server/tcp_connection.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>

#include "base/bytes.h"
#include "base/mutex.h"
#include "ps/transport/local_socket.h"
#include "ps/transport/socket.h"

namespace shoal::ps {
namespace {

// Bytes of one read: few enough to stay in the second-level cache until they are applied.
constexpr size_t kReadBytes = 256u << 10;
constexpr size_t kUsualBuffer = 1u << 20;
constexpr int kReadsATurn = 4;  // then other connections get theirs
// The client sees what was taken out of a ring, or put in, in steps of this size.
constexpr size_t kRingStep = 32u << 10;

bool IsRowRequest(FrameType type) {
  return type == FrameType::kPush || type == FrameType::kPull || type == FrameType::kPushPull ||
         type == FrameType::kCall;
}

// At most, of what has a bound.
size_t AnswerFrame(const FrameHeader& head) { return sizeof head + PaddedTo8(AnswerBytes(head)); }

}  // namespace

void Mailbox::Wake() {
  const uint64_t one = 1;
  // Only fails when the counter is full, and then the thread is awake.
  [[maybe_unused]] const ssize_t written = ::write(wake.get(), &one, sizeof one);
}

TcpConnection::TcpConnection(UniqueFd fd, ServerCore* core, std::shared_ptr<Mailbox> mailbox)
    : fd_(std::move(fd)),
      core_(core),
      mailbox_(std::move(mailbox)),
      opened_(RealClock::Get()->Now()),
      name_(PeerName(fd_.get())) {}

// Not merely closed: a child that this process forked may hold copies of the descriptor.
TcpConnection::~TcpConnection() { ::shutdown(fd_.get(), SHUT_RDWR); }

void TcpConnection::QueueControl(FrameType type, uint64_t id, std::string_view body) {
  FrameHeader head;
  head.type = type;
  head.id = id;
  scratch_.clear();
  AppendControlFrame(head, body, &scratch_);
  out_.Append(scratch_.data(), scratch_.size());
}

void TcpConnection::Reply(const FrameHeader& head, std::string_view body) {
  scratch_.clear();
  AppendControlFrame(head, body, &scratch_);
  out_.Append(scratch_.data(), scratch_.size());
}

void TcpConnection::CloseAfterFlush(const Status& why) {
  QueueControl(FrameType::kError, 0, EncodeError(why));
  shut_ = true;
}

void TcpConnection::FlushReplies() {
  {
    const MutexLock lock(mailbox_->mu);
    if (mailbox_->stop) return;
    mailbox_->flush.push_back(shared_from_this());
  }
  mailbox_->Wake();
}

TcpConnection::NextStep TcpConnection::Fail(Status why) {
  end_ = std::move(why);
  return NextStep::kClose;
}

TcpConnection::NextStep TcpConnection::Open() {
  nonces_.server = NewNonce();
  QueueControl(FrameType::kChallenge, 0, EncodeChallenge(nonces_.server));
  const Status sent = Send();
  return sent.ok() ? NextStep::kWait : Fail(sent);
}

TcpConnection::NextStep TcpConnection::OnReadable() {
  if (polled()) {
    client_closed_ = !DrainWakeUps(fd_.get());
    bool some = false;
    const NextStep next = Poll(&some);
    // So that it is quiet once more.
    if (next == NextStep::kWait && pipe_ != nullptr) (void)pipe_->Sleep(held_back_);
    return next == NextStep::kWait && client_closed_ ? Fail(Status::Ok()) : next;
  }
  for (int turn = 0; turn < kReadsATurn && !held_back_; ++turn) {
    char* to = in_.Reserve(state_ == State::kJoined ? kReadBytes
                                                    : sizeof(FrameHeader) + kMaxHandshakePayload);
    const size_t room = std::min(in_.room(), kReadBytes);
    const long got = ReceiveSome(fd_.get(), to, room);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got < 0) return Fail(Unavailable(fmt::format("read error {}", errno)));
    if (got == 0) {
      return Fail(in_.empty() ? Status::Ok() : DataLoss("the connection ended inside a frame"));
    }
    in_.Commit(static_cast<size_t>(got));
    read_ += static_cast<size_t>(got);
    core_->wire_bytes_in.fetch_add(static_cast<uint64_t>(got), std::memory_order_relaxed);
    const NextStep next = Handle();
    if (next != NextStep::kWait) return next;
    if (static_cast<size_t>(got) < room) break;
  }
  return NextStep::kWait;
}

TcpConnection::NextStep TcpConnection::OnWritable() { return Handle(); }

TcpConnection::NextStep TcpConnection::PollPipe(bool* some) {
  *some = false;
  for (int turn = 0; turn < kReadsATurn; ++turn) {
    // Without room the pipe only moves on, so that answers may go out.
    const size_t room = held_back_ ? 0 : kReadBytes;
    const size_t got = pipe_->Receive(in_.Reserve(room), room);
    const Status status = pipe_->status();
    if (!status.ok()) return Fail(status);
    if (got == 0 && !blocked_ && !wants_room_) break;
    in_.Commit(got);
    core_->wire_bytes_in.fetch_add(got, std::memory_order_relaxed);
    const size_t before = queued();
    const NextStep next = Handle();
    if (got > 0 || queued() != before) *some = true;
    if (next != NextStep::kWait || got == 0) return next;
  }
  return NextStep::kWait;
}

TcpConnection::NextStep TcpConnection::Poll(bool* some) {
  if (pipe_ != nullptr) return PollPipe(some);
  if (!uses_ring()) {
    const size_t before = read_;
    const NextStep next = OnReadable();
    *some = read_ != before;
    return next;
  }
  *some = reader_->CheckForData();
  if ((blocked_ || wants_room_) && writer_->Room(kRingFrame) >= kRingFrame) *some = true;
  return *some ? Handle() : NextStep::kWait;
}

TcpConnection::SleepResult TcpConnection::Sleep() {
  if (pipe_ != nullptr) {
    const UcxSleep sleep = pipe_->Sleep(held_back_);
    return sleep == UcxSleep::kAsleep    ? SleepResult::kYes
           : sleep == UcxSleep::kSending ? SleepResult::kShortly
                                         : SleepResult::kNo;
  }
  if ((blocked_ || wants_room_) && writer_->AwaitRoom()) return SleepResult::kNo;
  return reader_->Sleep() ? SleepResult::kYes : SleepResult::kNo;
}

TcpConnection::NextStep TcpConnection::Handle() {
  for (;;) {
    bool more = false;
    Status status = uses_ring() ? HandleRingFrames(&more) : HandleFrames(&more);
    const Status sent = uses_ring() ? SendToRing() : Send();
    if (!status.ok()) return Fail(std::move(status));
    if (!sent.ok()) return Fail(sent);
    if (state_ == State::kMoving) return NextStep::kMove;
    const size_t limit = core_->options().max_queue_bytes;
    // `more` while the kernel takes nothing: the rest waits until it does.
    UpdateQueuedBytes();
    held_back_ = queued() > limit || (more && (blocked_ || wants_room_));
    if (!more || held_back_) break;
  }
  in_.ShrinkTo(kUsualBuffer);
  if (closing_ && queued() == 0) return Fail(Status::Ok());
  return NextStep::kWait;
}

void TcpConnection::UpdateQueuedBytes() {
  std::optional<Lane::Guard> guard;
  if (state_ == State::kJoined) guard.emplace(core_->lane(hello_.lane));
  queued_.store(out_.size() + sending_.size(), std::memory_order_relaxed);
  closing_ = shut_;
}

Status TcpConnection::HandleFrames(bool* more) {
  *more = wants_room_ = false;
  std::optional<Lane::Guard> guard;
  if (state_ == State::kJoined) guard.emplace(core_->lane(hello_.lane));
  const size_t pause = std::min<size_t>(core_->options().max_queue_bytes, 512u << 10);
  const uint32_t bound = state_ == State::kJoined ? kMaxPayload : kMaxHandshakePayload;
  while (!shut_ && state_ != State::kMoving && in_.size() >= sizeof(FrameHeader)) {
    // Answers go out in pieces of this size, so that the client works while the server does.
    if (out_.size() >= pause || (guard && WaitsForBackup(&core_->lane(hello_.lane)))) {
      *more = true;
      return Status::Ok();
    }
    FrameHeader head;
    TRY(ReadHeader(in_.view().substr(0, sizeof head), bound, &head));
    const size_t whole = sizeof head + head.payload;
    if (in_.size() < whole) {
      in_.Reserve(whole - in_.size());
      break;
    }
    const std::string_view payload = in_.view().substr(sizeof head, head.payload);
    TRY(CheckPayload(head, payload));
    TRY(HandleOne(head, payload));
    in_.Consume(whole);
  }
  return Status::Ok();
}

Status TcpConnection::HandleOne(const FrameHeader& head, std::string_view payload) {
  if (state_ == State::kAwaitsProof) return HandleProof(head, payload);
  switch (head.type) {
    case FrameType::kPush:
    case FrameType::kPull:
    case FrameType::kPushPull:
    case FrameType::kCall:
      return HandleRows(head, payload);
    case FrameType::kChallenge:
    case FrameType::kProof:
    case FrameType::kWelcome:
    case FrameType::kAck:
    case FrameType::kRows:
    case FrameType::kRefused:
    case FrameType::kReply:
    case FrameType::kError:
    case FrameType::kMarkerRequest:
    case FrameType::kShardsMoved:
      return InvalidArgument(
          fmt::format("a client may not send frames of type {}", static_cast<int>(head.type)));
    default:
      return core_->Control(hello_, shared_from_this(), head, payload.substr(0, head.body));
  }
}

Status TcpConnection::HandleProof(const FrameHeader& head, std::string_view payload) {
  if (head.type != FrameType::kProof) return Unauthenticated("a client must prove the token first");
  const Status proof =
      DecodeProof(payload.substr(0, head.body), core_->options().token, &nonces_, &hello_);
  if (!proof.ok()) {
    QueueControl(FrameType::kError, 0, EncodeError(proof));
    return proof;
  }
  auto wanted = core_->Route(hello_);
  if (!wanted.ok()) {
    QueueControl(FrameType::kError, 0, EncodeError(wanted.status()));
    return wanted.status().retryable() ? Status(Code::kUnavailable, "") : wanted.status();
  }
  kept_ = std::move(wanted).value();
  if (kept_ != nullptr) core_ = kept_.get();
  if (hello_.lane >= core_->lanes()) {
    return InvalidArgument(fmt::format("hello to lane {} of {}", hello_.lane, core_->lanes()));
  }
  state_ = State::kMoving;
  return Status::Ok();
}

// As HandleFrames, but where the frames lie. Whatever is checked and then used is copied first, for
// the client may change it meanwhile; rows are only added, whatever they are.
Status TcpConnection::HandleRingFrames(bool* more) {
  Lane::Guard guard(core_->lane(hello_.lane));
  wants_room_ = false;
  for (size_t taken = 0; !shut_;) {
    if (reader_->broken()) return DataLoss("the client broke the shared memory");
    if (taken >= kRingStep) {
      taken = 0;
      PublishToRing();
    }
    if (!in_.empty()) {
      const size_t before = reader_->view().size();
      bool whole = false;
      TRY(GatherFrame(&whole));
      taken += before - reader_->view().size();
      if (!whole) return Status::Ok();
      continue;
    }
    const std::string_view have = reader_->view();
    FrameHeader head;
    if (have.size() < sizeof head) return Status::Ok();
    TRY(ReadHeader(have.substr(0, sizeof head), kMaxPayload, &head));
    // A request waits where it is until its answer has a place.
    wants_room_ = writer_->Room(AnswerFrame(head)) < std::min(AnswerFrame(head), kRingFrame);
    if (wants_room_ || !out_.empty() || !sending_.empty() ||
        WaitsForBackup(&core_->lane(hello_.lane))) {
      *more = true;
      return Status::Ok();
    }
    const size_t whole = sizeof head + head.payload;
    if (whole > kRingFrame) {
      in_.Reserve(whole);
      in_.Append(have.data(), sizeof head);
      reader_->Consume(sizeof head);
      continue;
    }
    if (have.size() < whole) return Status::Ok();
    std::string_view payload = have.substr(sizeof head, head.payload);
    if (!IsRowRequest(head.type)) {
      copied_.assign(payload);
      payload = copied_;
      TRY(CheckPayload(head, payload));
    }
    TRY(HandleOne(head, payload));
    reader_->Consume(whole);
    taken += whole;
    core_->wire_bytes_in.fetch_add(whole, std::memory_order_relaxed);
  }
  return Status::Ok();
}

Status TcpConnection::GatherFrame(bool* whole) {
  FrameHeader head;
  TRY(ReadHeader(in_.view().substr(0, sizeof head), kMaxPayload, &head));
  const std::string_view have = reader_->view();
  const size_t step = std::min(sizeof head + head.payload - in_.size(), have.size());
  in_.Append(have.data(), step);
  reader_->Consume(step);
  *whole = in_.size() == sizeof head + head.payload;
  if (!*whole) return Status::Ok();
  const std::string_view payload = in_.view().substr(sizeof head);
  if (!IsRowRequest(head.type)) TRY(CheckPayload(head, payload));
  TRY(HandleOne(head, payload));
  core_->wire_bytes_in.fetch_add(in_.size(), std::memory_order_relaxed);
  in_.Consume(in_.size());
  in_.ShrinkTo(kUsualBuffer);
  return Status::Ok();
}

// Publishes what was handled and answered to the client.
void TcpConnection::PublishToRing() {
  const bool full = reader_->Release();
  const bool sleeps = writer_->Publish();
  if (full || sleeps) WakeOtherEnd(fd_.get());
}

char* TcpConnection::BeginAnswer(size_t size) {
  in_place_ = uses_ring() && out_.empty() && sending_.empty() && writer_->Room(size) >= size;
  return in_place_ ? writer_->At() : out_.Reserve(size);
}

void TcpConnection::EndAnswer(size_t size) {
  if (!in_place_) return out_.Commit(size);
  writer_->Advance(size);
  core_->wire_bytes_out.fetch_add(size, std::memory_order_relaxed);
}

TcpConnection::NextStep TcpConnection::Adopt(std::shared_ptr<Mailbox> mailbox) {
  mailbox_ = std::move(mailbox);
  const NextStep next = Join();
  return next == NextStep::kWait ? Handle() : next;
}

TcpConnection::NextStep TcpConnection::Join() {
  const Status opened = hello_.ucx.empty() ? Status::Ok() : OpenPipe();
  if (!opened.ok()) {
    QueueControl(FrameType::kError, 0, EncodeError(opened));
    const Status ignored = Send();
    return Fail(opened);
  }
  auto welcome = core_->Join(hello_, shared_from_this());
  if (!welcome.ok()) {
    QueueControl(FrameType::kError, 0, EncodeError(welcome.status()));
    const Status ignored = Send();
    // A newcomer that is asked to wait is no fault.
    return Fail(welcome.status().retryable() ? Status::Ok() : welcome.status());
  }
  if (pipe_ != nullptr) welcome->ucx = pipe_->address();
  const Status said = SendWelcome(*welcome);
  if (!said.ok()) return Fail(said);
  state_ = State::kJoined;
  core_->OnWelcomed(hello_);
  return NextStep::kWait;
}

Status TcpConnection::SendWelcome(const Welcome& welcome) {
  Lane::Guard guard(core_->lane(hello_.lane));
  const std::string body = EncodeWelcome(core_->options().token, nonces_, welcome);
  FrameHeader head;
  head.type = FrameType::kWelcome;
  std::string frame;
  AppendControlFrame(head, body, &frame);
  if (pipe_ != nullptr) {
    // The last that goes over the socket.
    const long sent = SendSome(fd_.get(), frame.data(), frame.size());
    return sent == static_cast<long>(frame.size())
               ? Status::Ok()
               : Unavailable("the client does not read its socket");
  }
  if (core_->options().shared_memory && IsLocalSocket(fd_.get())) {
    const Status handed = SendMemoryDescriptor(frame);
    if (handed.ok() || !handed.retryable()) return handed;
    // Without memory for rings the unix socket will do.
  }
  out_.Append(frame.data(), frame.size());
  return Status::Ok();
}

Status TcpConnection::OpenPipe() {
  if (!core_->options().ucx) {
    return FailedPrecondition(
        fmt::format("server {} does not take connections over UCX: give its job the transport too",
                    core_->options().index));
  }
  TRY_ASSIGN(auto pipe, UcxPipe::Make());
  TRY(pipe->Expect(UcxTag(core_->options().token, nonces_)));
  TRY(pipe->Connect(hello_.ucx));
  pipe_ = std::move(pipe);
  return Status::Ok();
}

Status TcpConnection::SendMemoryDescriptor(const std::string& frame) {
  auto memory = SharedRings::Create(core_->options().ring_bytes);
  if (!memory.ok()) return Unavailable(memory.status().message());
  const Status sent = SendWithDescriptor(fd_.get(), frame, memory->fd());
  if (!sent.ok()) return FailedPrecondition(sent.message());
  memory_.emplace(std::move(memory).value());
  reader_.emplace(*memory_, SharedRings::kToServer);
  writer_.emplace(*memory_, SharedRings::kToClient);
  in_.Consume(in_.size());  // wake-ups
  return Status::Ok();
}

Status TcpConnection::HandleRows(const FrameHeader& head, std::string_view payload) {
  Session* session = core_->lane(hello_.lane).FindSession(hello_.session);
  if (session == nullptr) return FailedPrecondition("the connection's session has been replaced");
  RowSource source;
  source.front = payload.substr(0, ArgumentArea(head) + KeyAreaOf(head));
  source.values = payload.data() + source.front.size();
  if (uses_ring()) {
    copied_.assign(source.front);
    source.front = copied_;
  }
  const ReplicaLog& log = core_->lane(hello_.lane).log;
  if (log.holds() || (log.paired() && Writes(head))) return HandleRowsLate(session, head, source);

  FrameHeader answer;
  answer.id = head.id;
  const size_t values = AnswerBytes(head);
  const size_t padded = PaddedTo8(values);
  char* const at = BeginAnswer(sizeof answer + padded);
  source.out = at + sizeof answer;
  bool order = false;
  const Status status = Apply(session, head, source, &order);
  if (order) return status;
  if (!status.ok()) {
    answer.type = FrameType::kRefused;
    answer.flags = core_->lane(hello_.lane).refusal();
    Reply(answer, EncodeError(status));
    return Status::Ok();
  }
  answer.type = WantsRows(head) ? FrameType::kRows : FrameType::kAck;
  if (padded > 0) {
    std::memset(at + sizeof answer + values, 0, padded - values);
    answer.rows = head.rows;
    answer.dim = head.dim;
    answer.values = head.answer;
    answer.table = head.table;
    answer.payload = static_cast<uint32_t>(padded);
    if (!uses_ring()) answer.payload_crc = Crc32c(at + sizeof answer, padded);
  }
  SealHeader(&answer);
  std::memcpy(at, &answer, sizeof answer);
  EndAnswer(sizeof answer + padded);
  return Status::Ok();
}

Status TcpConnection::Apply(Session* session, const FrameHeader& head, const RowSource& source,
                            bool* order) {
  try {
    return core_->lane(hello_.lane).RowOperation(session, head, source, order);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted(
        fmt::format("server {} has no memory for more rows", core_->options().index));
  }
}

Status TcpConnection::HandleRowsLate(Session* session, const FrameHeader& head, RowSource source) {
  late_.resize(AnswerBytes(head));
  source.out = late_.data();
  bool order = false;
  const Status status = Apply(session, head, source, &order);
  if (order) return status;
  FrameHeader answer;
  answer.id = head.id;
  answer.type = !status.ok()      ? FrameType::kRefused
                : WantsRows(head) ? FrameType::kRows
                                  : FrameType::kAck;
  if (!status.ok()) answer.flags = core_->lane(hello_.lane).refusal();
  if (status.ok() && WantsRows(head)) {
    answer.rows = head.rows;
    answer.dim = head.dim;
    answer.values = head.answer;
    answer.table = head.table;
  }
  core_->lane(hello_.lane)
      .Respond(shared_from_this(), answer, status.ok() ? late_ : EncodeError(status));
  return Status::Ok();
}

bool TcpConnection::WaitsForBackup(Lane* lane) {
  if (!lane->log.full()) return false;
  lane->AwaitRoom(shared_from_this());
  wants_room_ = true;
  return true;
}

// Without the lane's lock, except to take what was queued.
Status TcpConnection::Send() {
  blocked_ = false;
  for (;;) {
    if (sending_.empty()) {
      sending_.ShrinkTo(kUsualBuffer);
      std::optional<Lane::Guard> guard;
      if (state_ == State::kJoined) guard.emplace(core_->lane(hello_.lane));
      sending_.Swap(out_);
    }
    if (sending_.empty()) return Status::Ok();
    const long sent = SendFirst();
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      blocked_ = true;
      return Status::Ok();
    }
    if (sent < 0) return Unavailable("the client no longer reads its answers");
    core_->wire_bytes_out.fetch_add(static_cast<uint64_t>(sent), std::memory_order_relaxed);
    sending_.Consume(static_cast<size_t>(sent));
  }
}

long TcpConnection::SendFirst() {
  if (state_ != State::kJoined || pipe_ == nullptr)
    return SendSome(fd_.get(), sending_.data(), sending_.size());
  const iovec all{sending_.data(), sending_.size()};
  const size_t sent = pipe_->Send({&all, 1});
  if (sent > 0) return static_cast<long>(sent);
  errno = EAGAIN;
  return -1;
}

Status TcpConnection::SendToRing() {
  blocked_ = false;
  for (;;) {
    if (sending_.empty()) {
      sending_.ShrinkTo(kUsualBuffer);
      Lane::Guard guard(core_->lane(hello_.lane));
      sending_.Swap(out_);
    }
    if (sending_.empty()) break;
    const size_t step =
        std::min(sending_.size(), writer_->Room(std::min(sending_.size(), kRingFrame)));
    if (step == 0) {
      blocked_ = true;
      break;
    }
    std::memcpy(writer_->At(), sending_.data(), step);
    writer_->Advance(step);
    core_->wire_bytes_out.fetch_add(step, std::memory_order_relaxed);
    sending_.Consume(step);
  }
  PublishToRing();
  return writer_->broken() ? DataLoss("the client broke the shared memory") : Status::Ok();
}

void TcpConnection::Closed() {
  if (state_ == State::kJoined) core_->OnConnectionLost(hello_, this);
}

}  // namespace shoal::ps
