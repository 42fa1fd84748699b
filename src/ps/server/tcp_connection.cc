#include "ps/server/tcp_connection.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>

#include "base/bytes.h"
#include "base/mutex.h"
#include "ps/transport/local_socket.h"
#include "ps/transport/shared_ring.h"
#include "ps/transport/socket.h"

namespace shoal::ps {
namespace {

constexpr int kReadsATurn = 4;  // then other connections get theirs
// Answers over a socket or UCX go out in pieces of this size, so that the client works while the
// server does.
constexpr size_t kMostWaiting = 512u << 10;

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
      name_(PeerName(fd_.get())),
      stream_(MakeSocketStream(fd_.get())) {}

// Not merely closed: a child that this process forked may hold copies of the descriptor.
TcpConnection::~TcpConnection() { ::shutdown(fd_.get(), SHUT_RDWR); }

void TcpConnection::Reply(const FrameHeader& head, std::string_view body) {
  answers_.Append(head, body);
}

void TcpConnection::CloseAfterFlush(const Status& why) {
  answers_.Append(FrameType::kError, 0, EncodeError(why));
  answers_.Shut();
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
  answers_.Append(FrameType::kChallenge, 0, EncodeChallenge(nonces_.server));
  const Status sent = Send();
  return sent.ok() ? NextStep::kWait : Fail(sent);
}

TcpConnection::NextStep TcpConnection::OnReadable() {
  bool some = false;
  if (!polled()) return Poll(&some);
  client_closed_ = !DrainWakeUps(fd_.get());
  const NextStep next = Poll(&some);
  // So that event_fd is quiet once more.
  if (next == NextStep::kWait && event_fd() >= 0) (void)stream_->Sleep(held_back_);
  return next == NextStep::kWait && client_closed_ ? Fail(Status::Ok()) : next;
}

TcpConnection::NextStep TcpConnection::OnWritable() { return Handle(); }

TcpConnection::NextStep TcpConnection::Poll(bool* some) {
  *some = false;
  const size_t most = state_ == State::kJoined ? ByteStream::kReceiveBytes
                                               : sizeof(FrameHeader) + kMaxHandshakePayload;
  for (int turn = 0; turn < kReadsATurn; ++turn) {
    // A client that is held back waits in its socket's buffer; a stream that is polled goes on, so
    // that answers may go out.
    if (held_back_ && !polled()) break;
    size_t got = 0;
    Status received = stream_->Receive(held_back_ ? 0 : most, &got);
    if (!received.ok()) return Fail(std::move(received));
    if (stream_->ended()) {
      return Fail(stream_->view().empty() ? Status::Ok()
                                          : DataLoss("the connection ended inside a frame"));
    }
    const bool goes_on =
        polled() && (answers_.blocked() || must_wait_) && stream_->HasRoom(kRingFrame);
    if (got == 0 && !goes_on) break;
    core_->wire_bytes_in.fetch_add(got, std::memory_order_relaxed);
    const size_t before = queued();
    const NextStep next = Handle();
    if (got > 0 || stream_->in_shared_memory() || queued() != before) *some = true;
    if (next != NextStep::kWait || got < most) return next;
  }
  return NextStep::kWait;
}

SleepResult TcpConnection::Sleep() {
  if ((answers_.blocked() || must_wait_) && stream_->AwaitRoom()) return SleepResult::kDataPending;
  return stream_->Sleep(held_back_);
}

TcpConnection::NextStep TcpConnection::Handle() {
  for (;;) {
    bool more = false;
    Status status = HandleFrames(&more);
    const Status sent = Send();
    if (!status.ok()) return Fail(std::move(status));
    if (!sent.ok()) return Fail(sent);
    if (state_ == State::kMoving) return NextStep::kMove;
    // `more` while the stream takes nothing: the rest waits until it does.
    answers_.Measure();
    held_back_ =
        queued() > core_->options().max_queue_bytes || (more && (answers_.blocked() || must_wait_));
    if (!more || held_back_) break;
  }
  return answers_.Finished() ? Fail(Status::Ok()) : NextStep::kWait;
}

// Whatever is checked and then used is copied out of shared memory first, for the client may change
// it meanwhile; rows are only added, whatever they are.
Status TcpConnection::HandleFrames(bool* more) {
  *more = must_wait_ = false;
  std::optional<Lane::Guard> guard;
  if (state_ == State::kJoined) guard.emplace(lane_of_hello());
  const uint32_t bound = state_ == State::kJoined ? kMaxPayload : kMaxHandshakePayload;
  while (!answers_.shut() && state_ != State::kMoving) {
    FrameHeader head;
    bool there = false;
    TRY(FrameReader::Peek(*stream_, bound, &head, &there));
    if (!there) break;
    *more = !stream_->gathering() && MustWait(head);
    if (*more) break;
    std::string_view payload;
    TRY(frames_.Take(stream_.get(), head, &payload, &there));
    if (!there) break;
    TRY(HandleOne(head, payload));
    if (stream_->Consume(FrameBytes(head))) TRY(Publish());
  }
  return Status::Ok();
}

bool TcpConnection::MustWait(const FrameHeader& head) {
  if (stream_->in_shared_memory()) {
    // A request waits where it is until its answer has a place.
    must_wait_ = !stream_->HasRoom(std::min(AnswerFrame(head), kRingFrame));
    if (must_wait_ || !answers_.empty()) return true;
  } else if (answers_.waiting() >= std::min(core_->options().max_queue_bytes, kMostWaiting)) {
    return true;
  }
  if (state_ != State::kJoined || !lane_of_hello().log.full()) return false;
  lane_of_hello().AwaitRoom(shared_from_this());
  must_wait_ = true;
  return true;
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
    answers_.Append(FrameType::kError, 0, EncodeError(proof));
    return proof;
  }
  auto wanted = core_->Route(hello_);
  if (!wanted.ok()) {
    answers_.Append(FrameType::kError, 0, EncodeError(wanted.status()));
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

Status TcpConnection::Publish() {
  stream_->Release();
  return stream_->Publish();
}

TcpConnection::NextStep TcpConnection::Adopt(std::shared_ptr<Mailbox> mailbox) {
  mailbox_ = std::move(mailbox);
  const NextStep next = Join();
  return next == NextStep::kWait ? Handle() : next;
}

TcpConnection::NextStep TcpConnection::Join() {
  std::unique_ptr<UcxPipe> pipe;
  if (!hello_.ucx.empty()) {
    auto opened = OpenPipe();
    if (!opened.ok()) {
      answers_.Append(FrameType::kError, 0, EncodeError(opened.status()));
      const Status ignored = Send();
      return Fail(opened.status());
    }
    pipe = std::move(opened).value();
  }
  auto welcome = core_->Join(hello_, shared_from_this());
  if (!welcome.ok()) {
    answers_.Append(FrameType::kError, 0, EncodeError(welcome.status()));
    const Status ignored = Send();
    // A newcomer that is asked to wait is no fault.
    return Fail(welcome.status().retryable() ? Status::Ok() : welcome.status());
  }
  if (pipe != nullptr) welcome->ucx = pipe->address();
  const Status said = SendWelcome(*welcome, std::move(pipe));
  if (!said.ok()) return Fail(said);
  state_ = State::kJoined;
  answers_.JoinLane(&lane_of_hello());
  core_->OnWelcomed(hello_);
  return NextStep::kWait;
}

Status TcpConnection::SendWelcome(const Welcome& welcome, std::unique_ptr<UcxPipe> pipe) {
  Lane::Guard guard(lane_of_hello());
  const std::string body = EncodeWelcome(core_->options().token, nonces_, welcome);
  FrameHeader head;
  head.type = FrameType::kWelcome;
  if (pipe == nullptr && !(core_->options().shared_memory && IsLocalSocket(fd_.get()))) {
    answers_.Append(head, body);
    return Status::Ok();
  }
  std::string frame;
  AppendControlFrame(head, body, &frame);
  if (pipe != nullptr) {
    const long sent = SendSome(fd_.get(), frame.data(), frame.size());
    if (sent != static_cast<long>(frame.size())) {
      return Unavailable("the client does not read its socket");
    }
    stream_ = MakeUcxStream(std::move(pipe));
    return Status::Ok();
  }
  const Status handed = HandOverRings(frame);
  if (handed.ok() || !handed.retryable()) return handed;
  answers_.Append(head, body);  // without memory for rings the unix socket will do
  return Status::Ok();
}

Result<std::unique_ptr<UcxPipe>> TcpConnection::OpenPipe() {
  if (!core_->options().ucx) {
    return FailedPrecondition(
        fmt::format("server {} does not take connections over UCX: give its job the transport too",
                    core_->options().index));
  }
  TRY_ASSIGN(auto pipe, UcxPipe::Make());
  TRY(pipe->Expect(UcxTag(core_->options().token, nonces_)));
  TRY(pipe->Connect(hello_.ucx));
  return pipe;
}

Status TcpConnection::HandOverRings(const std::string& frame) {
  auto rings = SharedRings::Create(core_->options().ring_bytes);
  if (!rings.ok()) return Unavailable(rings.status().message());
  const Status sent = SendWithDescriptor(fd_.get(), frame, rings->fd());
  if (!sent.ok()) return FailedPrecondition(sent.message());
  stream_ = MakeRingStream(fd_.get(), std::move(rings).value(), SharedRings::kToServer);
  return Status::Ok();
}

Status TcpConnection::HandleRows(const FrameHeader& head, std::string_view payload) {
  Session* session = lane_of_hello().FindSession(hello_.session);
  if (session == nullptr) return FailedPrecondition("the connection's session has been replaced");
  RowSource source;
  source.front = payload.substr(0, ArgumentArea(head) + KeyAreaOf(head));
  source.values = payload.data() + source.front.size();
  if (stream_->in_shared_memory()) {
    keys_.assign(source.front);
    source.front = keys_;
  }
  const ReplicaLog& log = lane_of_hello().log;
  if (log.holds() || (log.paired() && Writes(head))) return HandleRowsLate(session, head, source);

  FrameHeader answer;
  answer.id = head.id;
  const size_t values = AnswerBytes(head);
  const size_t padded = PaddedTo8(values);
  char* const at = answers_.Begin(sizeof answer + padded, stream_.get());
  source.out = at + sizeof answer;
  bool order = false;
  const Status status = Apply(session, head, source, &order);
  if (order) return status;
  if (!status.ok()) {
    answer.type = FrameType::kRefused;
    answer.flags = lane_of_hello().refusal();
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
    if (!stream_->in_shared_memory()) answer.payload_crc = Crc32c(at + sizeof answer, padded);
  }
  SealHeader(&answer);
  std::memcpy(at, &answer, sizeof answer);
  if (answers_.End(sizeof answer + padded, stream_.get())) {
    core_->wire_bytes_out.fetch_add(sizeof answer + padded, std::memory_order_relaxed);
  }
  return Status::Ok();
}

Status TcpConnection::Apply(Session* session, const FrameHeader& head, const RowSource& source,
                            bool* order) {
  try {
    return lane_of_hello().RowOperation(session, head, source, order);
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
  if (!status.ok()) answer.flags = lane_of_hello().refusal();
  if (status.ok() && WantsRows(head)) {
    answer.rows = head.rows;
    answer.dim = head.dim;
    answer.values = head.answer;
    answer.table = head.table;
  }
  lane_of_hello().Respond(shared_from_this(), answer, status.ok() ? late_ : EncodeError(status));
  return Status::Ok();
}

// Without the lane's lock, except to take what was queued.
Status TcpConnection::Send() {
  size_t taken = 0;
  const Status sent = answers_.Send(stream_.get(), &taken);
  if (taken > 0) core_->wire_bytes_out.fetch_add(taken, std::memory_order_relaxed);
  TRY(sent);
  return Publish();
}

void TcpConnection::Closed() {
  if (state_ == State::kJoined) core_->OnConnectionLost(hello_, this);
}

}  // namespace shoal::ps
