// One accepted connection: reads a request, hands it over as an exchange, sends its answer, and
// goes on with the next. One exchange at a time, so that answers cannot be mixed up; pipelined
// requests wait, a bounded number of their bytes in memory and the rest with the peer.
//
// Everything belongs to the I/O thread of the connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "net/http/chunked_body.h"
#include "net/http/request_head.h"
#include "net/http/server_core.h"
#include "net/http/server_reply.h"
#include "net/http/server_transport.h"

namespace shoal::net {

class ServerReplyStream;
class ServerWebSocket;
class ServerConnection;

// The I/O thread as its connections see it.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  // It is closed: its owner lets go of it.
  virtual void Remove(ServerConnection* connection) = 0;
};

struct ConnectionContext {
  std::shared_ptr<ServerCore> core;
  std::shared_ptr<LoopPort> port;
  ConnectionOwner* owner = nullptr;  // until Close
  PeerAddress peer;
  std::string peer_key;  // counted in ServerCore::peers; empty: not
  TimePoint accepted;
  bool refused = false;  // over a limit: its first request is answered with 503
};

class ServerConnection final : public ServerTransport::User,
                               public std::enable_shared_from_this<ServerConnection> {
 public:
  ServerConnection(ConnectionContext context, std::shared_ptr<ServerTransport> transport);
  ~ServerConnection() override;

  void Start();
  // Closes at once; everybody concerned is told.
  void Close();
  // Closes an idle connection; a busy one after its exchange.
  void FinishSoon();
  void CheckDeadlines(TimePoint now);
  // Since when nothing is asked; none while something is.
  std::optional<TimePoint> idle_since() const;

  // Of its exchange, which has not been answered before.
  void SendReply(HttpServerReply reply);
  void StartStream(int status, const HttpHeaders& headers,
                   const std::shared_ptr<ServerReplyStream>& stream);
  // The next part of the stream; `last` ends it.
  void SendPart(std::string part, bool last);
  void StartWebSocket(const std::shared_ptr<ServerWebSocket>& socket,
                      const HttpServerRequest& request, const std::string& protocol);

  const std::shared_ptr<ServerCore>& core() const { return context_.core; }
  const std::shared_ptr<LoopPort>& port() const { return context_.port; }
  size_t queued_bytes() const { return transport_ == nullptr ? 0 : transport_->queued_bytes(); }

  void OnBytes(std::string_view bytes) override;
  void OnEnd(bool orderly) override;
  void OnSent() override;

 private:
  enum class Phase { kIdle, kHead, kBody, kAnswer, kReply, kLinger, kWebSocket, kClosed };
  // A request that is coming.
  struct Incoming {
    explicit Incoming(std::shared_ptr<ServerCore> core) : charge(std::move(core)) {}
    HttpServerRequest request;
    RequestFraming framing;
    ChunkedDecoder chunks;
    size_t body_limit = 0;
    BodyCharge charge;
  };

  std::string_view unread() const { return std::string_view(in_).substr(in_begin_); }
  void TakeIn(size_t bytes);
  void Advance();
  bool Step();
  bool TakeHead();
  bool BeginBody();
  bool TakeBody();
  void HandOver();
  void ReadMore();
  void Refuse(const HttpRefusal& refusal);
  void FillPeer(HttpServerRequest* request) const;
  bool SendHead(int status, const HttpHeaders& headers, ReplyFraming framing, uint64_t length);
  void FinishReply();
  void Linger();
  bool IsLate(TimePoint now) const;

  ConnectionContext context_;
  std::shared_ptr<ServerTransport> transport_;  // null once closed
  Phase phase_ = Phase::kIdle;
  TimePoint since_;  // of the phase; kBody: since the head
  std::string in_;   // come, not understood yet
  size_t in_begin_ = 0;
  HeadScanner scanner_;
  std::unique_ptr<Incoming> incoming_;
  size_t lingered_ = 0;  // bytes dropped in kLinger

  // The answer under way.
  bool keep_alive_ = true;
  bool http11_ = true;
  bool head_only_ = false;
  bool chunked_ = false;
  bool upgrading_ = false;   // the request is for a WebSocket: nothing is read before the answer
  bool peer_ended_ = false;  // its side
  bool advancing_ = false;
  std::optional<uint64_t> length_left_;    // of a stream with a Content-Length
  std::weak_ptr<std::atomic<bool>> gone_;  // of the exchange: the peer has ended
  std::weak_ptr<ServerReplyStream> stream_;
  std::shared_ptr<ServerWebSocket> socket_;
  uint64_t sent_seen_ = 0;  // by the last check
  TimePoint progress_;      // when something was sent
};

}  // namespace shoal::net
