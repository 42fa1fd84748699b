#include "net/http/server_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "net/http/server_answers.h"
#include "net/http/server_websocket.h"

namespace shoal::net {
namespace {

constexpr size_t kReadAhead = 16 << 10;    // of pipelined requests
constexpr size_t kKeepInput = 256;         // capacity that an idle connection keeps
constexpr size_t kMostLingered = 1 << 20;  // bytes
constexpr auto kLingerTime = std::chrono::seconds(2);
constexpr size_t kDefaultBody = 1 << 20;

}  // namespace

ServerConnection::ServerConnection(ConnectionContext context,
                                   std::shared_ptr<ServerTransport> transport)
    : context_(std::move(context)),
      transport_(std::move(transport)),
      since_(context_.accepted),
      progress_(since_) {}

ServerConnection::~ServerConnection() = default;

void ServerConnection::Start() {
  transport_->Start(weak_from_this());
  transport_->Read();
}

void ServerConnection::Close() {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();
  phase_ = Phase::kClosed;
  transport_->Close();
  transport_.reset();
  in_ = {};
  in_begin_ = 0;
  incoming_.reset();
  if (!context_.peer_key.empty()) context_.core->peers.Remove(context_.peer_key);
  --context_.core->connections;
  if (context_.refused) --context_.core->refusing;
  if (const auto gone = gone_.lock()) *gone = true;
  if (const auto stream = std::exchange(stream_, {}).lock()) stream->EndFromPeer();
  if (const auto socket = std::exchange(socket_, nullptr)) socket->EndFromServer();
  std::exchange(context_.owner, nullptr)->Remove(this);
}

void ServerConnection::FinishSoon() {
  keep_alive_ = false;
  if (phase_ == Phase::kIdle) return Close();
  if (socket_ != nullptr) socket_->Close(1001, "the server stops");
}

std::optional<TimePoint> ServerConnection::idle_since() const {
  if (phase_ != Phase::kIdle) return std::nullopt;
  return since_;
}

bool ServerConnection::IsLate(TimePoint now) const {
  const HttpServerLimits& limits = context_.core->options.limits;
  const Duration spent = now - since_;
  switch (phase_) {
    case Phase::kIdle:
      return spent > (transport_->ready() ? limits.idle_time : limits.header_time);
    case Phase::kHead:
      return spent > limits.header_time;
    case Phase::kBody: {
      const size_t rate = std::max<size_t>(limits.body_rate, 1);
      return spent >
             limits.body_grace + std::chrono::seconds(incoming_->request.body.size() / rate);
    }
    case Phase::kLinger:
      return spent > kLingerTime;
    default:
      return transport_->queued_bytes() > 0 && now - progress_ > limits.write_time;
  }
}

void ServerConnection::CheckDeadlines(TimePoint now) {
  if (phase_ == Phase::kClosed) return;
  const uint64_t sent = transport_->sent_bytes();
  if (transport_->queued_bytes() == 0 || sent != std::exchange(sent_seen_, sent)) progress_ = now;
  if (IsLate(now)) {
    if (phase_ == Phase::kHead) {
      Refuse({408, "the request's headers did not come in time"});
    } else if (phase_ == Phase::kBody) {
      Refuse({408, "the request's body did not come in time"});
    } else {
      Close();
    }
  } else if (const auto socket = socket_) {
    socket->CheckDeadlines(now);
  }
}

void ServerConnection::OnBytes(std::string_view bytes) {
  if (phase_ == Phase::kLinger) {
    lingered_ += bytes.size();
    if (lingered_ > kMostLingered) return Close();
    return transport_->Read();
  }
  in_.append(bytes);
  Advance();
}

void ServerConnection::OnEnd(bool orderly) {
  if (const auto gone = gone_.lock()) *gone = true;
  // A peer that has only ended its own side still reads a reply, but a stream has no end.
  const bool waits = phase_ == Phase::kAnswer || phase_ == Phase::kReply;
  if (!orderly || !waits || stream_.lock() != nullptr) return Close();
  peer_ended_ = true;
  keep_alive_ = false;
}

void ServerConnection::OnSent() {
  progress_ = context_.core->Now();
  if (phase_ == Phase::kAnswer) {
    if (const auto stream = stream_.lock()) stream->SetQueued(queued_bytes());
  } else if (phase_ == Phase::kReply && queued_bytes() == 0) {
    since_ = progress_;
    FinishReply();
  }
}

void ServerConnection::TakeIn(size_t bytes) {
  in_begin_ += bytes;
  if (in_begin_ < in_.size()) return;
  in_begin_ = 0;
  in_.clear();
  if (in_.capacity() > kKeepInput) std::string().swap(in_);
}

void ServerConnection::Advance() {
  if (std::exchange(advancing_, true)) return;
  const auto self = shared_from_this();
  while (Step()) {
  }
  advancing_ = false;
  ReadMore();
}

void ServerConnection::ReadMore() {
  switch (phase_) {
    case Phase::kIdle:
    case Phase::kHead:
    case Phase::kBody:
    case Phase::kLinger:
      return transport_->Read();
    case Phase::kAnswer:
      if (!upgrading_ && !peer_ended_ && unread().size() < kReadAhead) transport_->Read();
      return;
    default:
      return;
  }
}

// True: there may be more to do.
bool ServerConnection::Step() {
  switch (phase_) {
    case Phase::kIdle:
      if (unread().empty()) return false;
      phase_ = Phase::kHead;
      since_ = context_.core->Now();
      scanner_ = {};
      return true;
    case Phase::kHead:
      return TakeHead();
    case Phase::kBody:
      return TakeBody();
    default:
      return false;
  }
}

bool ServerConnection::TakeHead() {
  const HttpServerLimits& options = context_.core->options.limits;
  const RequestHeadLimits limits{options.header_bytes, options.header_count};
  std::optional<HttpRefusal> refusal;
  const size_t length = scanner_.Scan(unread(), limits, &refusal);
  if (!refusal && length == 0) return false;
  http11_ = true;
  head_only_ = false;
  incoming_ = std::make_unique<Incoming>(context_.core);
  if (!refusal) {
    refusal = ParseRequestHead(unread().substr(0, length), limits, &incoming_->request,
                               &incoming_->framing);
    TakeIn(length);
  }
  if (refusal) {
    Refuse(*refusal);
    return false;
  }
  FillPeer(&incoming_->request);
  http11_ = incoming_->framing.http11;
  head_only_ = incoming_->request.method == "HEAD";
  keep_alive_ = keep_alive_ && incoming_->framing.keep_alive;
  return BeginBody();
}

void ServerConnection::FillPeer(HttpServerRequest* request) const {
  request->peer = context_.peer.host;
  request->peer_port = context_.peer.port;
  request->tls = context_.core->tls != nullptr;
  const std::string_view origin = request->Header("origin");
  if (origin.empty()) return;
  const auto& allowed = context_.core->options.allowed_origins;
  request->origin_allowed = IsSameOrigin(origin, request->host) ||
                            std::find(allowed.begin(), allowed.end(), origin) != allowed.end();
}

bool ServerConnection::BeginBody() {
  const ServerCore& core = *context_.core;
  if (context_.refused) {
    Refuse({503, "the server has as many connections as it takes; try again later"});
    return false;
  }
  phase_ = Phase::kBody;
  if (!incoming_->framing.has_body()) return true;
  HttpBodyLimit limit = kDefaultBody;
  if (core.options.max_body) limit = core.options.max_body(incoming_->request);
  if (auto* reply = std::get_if<HttpServerReply>(&limit)) {
    keep_alive_ = false;  // the body was not read
    phase_ = Phase::kAnswer;
    SendReply(std::move(*reply));
    return false;
  }
  incoming_->body_limit = std::get<size_t>(limit);
  if (incoming_->framing.content_length > incoming_->body_limit) {
    Refuse({413, fmt::format("the body has {} bytes, at most {} are allowed here",
                             incoming_->framing.content_length, incoming_->body_limit)});
    return false;
  }
  if (incoming_->framing.expect_continue && unread().empty())
    transport_->Send("HTTP/1.1 100 Continue\r\n\r\n");
  return true;
}

bool ServerConnection::TakeBody() {
  std::string& body = incoming_->request.body;
  const RequestFraming& framing = incoming_->framing;
  std::optional<HttpRefusal> refusal;
  if (framing.chunked) {
    TakeIn(incoming_->chunks.Decode(unread(), incoming_->body_limit, &body, &refusal));
  } else {
    const size_t wanted = static_cast<size_t>(framing.content_length) - body.size();
    const size_t part = std::min(unread().size(), wanted);
    body.append(unread().substr(0, part));
    TakeIn(part);
  }
  if (!incoming_->charge.SetTo(body.size()) && !refusal)
    refusal = HttpRefusal{503, "the server holds as many request bodies as it takes; try again"};
  if (refusal) {
    Refuse(*refusal);
    return false;
  }
  const bool whole =
      framing.chunked ? incoming_->chunks.done() : body.size() == framing.content_length;
  if (!whole) return false;
  HandOver();
  return true;
}

void ServerConnection::HandOver() {
  ++context_.core->requests;
  phase_ = Phase::kAnswer;
  upgrading_ = incoming_->request.websocket;
  const auto incoming = std::exchange(incoming_, nullptr);
  auto gone = std::make_shared<std::atomic<bool>>(false);
  gone_ = gone;
  context_.core->options.handler(MakeServerExchange(shared_from_this(),
                                                    std::move(incoming->request),
                                                    std::move(incoming->charge), std::move(gone)));
}

void ServerConnection::Refuse(const HttpRefusal& refusal) {
  if (context_.refused) {
    ++context_.core->refused_connections;
  } else {
    ++context_.core->bad_requests;
  }
  keep_alive_ = false;
  phase_ = Phase::kAnswer;
  HttpServerReply reply = ProblemReply(refusal.status, refusal.detail);
  if (refusal.status == 503) reply.headers.emplace_back("Retry-After", "5");
  if (refusal.status == 426) {
    reply.headers.emplace_back("Upgrade", "websocket");
    reply.headers.emplace_back("Sec-WebSocket-Version", "13");
  }
  incoming_.reset();
  SendReply(std::move(reply));
}

bool ServerConnection::SendHead(int status, const HttpHeaders& headers, ReplyFraming framing,
                                uint64_t length) {
  if (context_.core->stopping) keep_alive_ = false;
  std::string head;
  const ReplyHead parts{status,
                        &headers,
                        framing,
                        length,
                        keep_alive_,
                        http11_,
                        context_.core->options.clock->Wall()};
  if (!AppendReplyHead(parts, &head)) return false;
  transport_->Send(std::move(head));
  return true;
}

void ServerConnection::SendReply(HttpServerReply reply) {
  if (phase_ != Phase::kAnswer) return;
  since_ = context_.core->Now();
  uint64_t length = reply.body.size();
  if (head_only_) length = GivenContentLength(reply.headers).value_or(length);
  if (!SendHead(reply.status, reply.headers, ReplyFraming::kLength, length)) {
    LogError("a reply with status {} has a bad header; 500 is sent instead", reply.status);
    return SendReply(ProblemReply(500, "the server made a reply that cannot be sent"));
  }
  phase_ = Phase::kReply;
  if (!head_only_ && !IsBodiless(reply.status) && !reply.body.empty())
    transport_->Send(std::move(reply.body));
  if (queued_bytes() == 0) FinishReply();
}

void ServerConnection::StartStream(int status, const HttpHeaders& headers,
                                   const std::shared_ptr<ServerReplyStream>& stream) {
  if (phase_ != Phase::kAnswer) return stream->EndFromPeer();
  length_left_ = GivenContentLength(headers);
  chunked_ = !length_left_ && http11_;
  if (!length_left_ && !http11_) keep_alive_ = false;
  const ReplyFraming framing = length_left_ ? ReplyFraming::kLength
                               : chunked_   ? ReplyFraming::kChunked
                                            : ReplyFraming::kUntilClose;
  if (!SendHead(status, headers, framing, length_left_.value_or(0))) {
    LogError("a streamed reply with status {} has a bad header; 500 is sent instead", status);
    SendReply(ProblemReply(500, "the server made a reply that cannot be sent"));
    return stream->EndFromPeer();
  }
  head_only_ = head_only_ || IsBodiless(status);
  stream_ = stream;
  if (peer_ended_) Close();
}

void ServerConnection::SendPart(std::string part, bool last) {
  if (phase_ != Phase::kAnswer) return;
  if (length_left_ && !head_only_) {
    // The peer would take what is too much for the next reply, and wait for what is missing.
    if (part.size() > *length_left_ || (last && part.size() < *length_left_)) {
      LogError("a streamed reply is not as long as its Content-Length says: closed");
      return Close();
    }
    *length_left_ -= part.size();
  }
  if (!part.empty() && !head_only_) {
    if (chunked_) transport_->Send(fmt::format("{:x}\r\n", part.size()));
    transport_->Send(std::move(part));
    if (chunked_) transport_->Send("\r\n");
  }
  if (!last) {
    if (const auto stream = stream_.lock()) stream->SetQueued(queued_bytes());
    return;
  }
  since_ = context_.core->Now();
  if (chunked_ && !head_only_) transport_->Send("0\r\n\r\n");
  stream_.reset();
  phase_ = Phase::kReply;
  if (queued_bytes() == 0) FinishReply();
}

void ServerConnection::StartWebSocket(const std::shared_ptr<ServerWebSocket>& socket,
                                      const HttpServerRequest& request,
                                      const std::string& protocol) {
  if (phase_ != Phase::kAnswer) return socket->EndFromServer();
  phase_ = Phase::kWebSocket;
  socket_ = socket;
  std::string early(unread());
  TakeIn(early.size());
  socket->Start(transport_, request, protocol, std::move(early));
}

void ServerConnection::FinishReply() {
  gone_.reset();
  length_left_.reset();
  if (!keep_alive_) return Linger();
  phase_ = Phase::kIdle;
  Advance();
}

// The end of a connection on which the peer may still be sending: a plain close would make the
// kernel throw away what it has not read of the answer.
void ServerConnection::Linger() {
  transport_->EndWriting();
  if (peer_ended_) return Close();
  phase_ = Phase::kLinger;
  std::string().swap(in_);
  in_begin_ = 0;
  if (!advancing_) transport_->Read();
}

}  // namespace shoal::net
