// One request and its answer as a handler of HttpServer (http_server.h) sees them: the request, and
// three ways to answer: a whole reply, a streamed reply, a WebSocket.
//
// All classes here are usable from any thread and are held by shared_ptr. Callbacks come on an I/O
// thread of the server and must not block. They are dropped after the last call, so a callback may
// hold the object that it was given to. The classes are abstract so that handlers are testable
// without a server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace shoal::net {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// A request that has passed all checks of its framing, its target and its headers.
struct HttpServerRequest {
  std::string method;  // as sent; a token: "GET"
  std::string target;  // as sent, without scheme and authority: path and query, percent-encoded
  // Segments of the path, percent-decoded: valid UTF-8 without control characters and '/', never
  // "." or "..". "/" has none; "/a//b/" is {"a", "", "b", ""}.
  std::vector<std::string> path;
  // In order, percent-decoded, '+' as a blank: valid UTF-8 without NUL.
  std::vector<std::pair<std::string, std::string>> query;
  HttpHeaders headers;  // names in lower case, values without blanks around them
  std::string body;     // chunked bodies are decoded
  std::string host;     // of Host, or of an absolute target; empty only for HTTP/1.0
  std::string peer;     // numeric address
  uint16_t peer_port = 0;
  bool tls = false;
  bool websocket = false;  // it asks for a WebSocket (RFC 6455): AcceptWebSocket may be called
  // Without a header Origin, with the server's own origin, or with one that the options allow.
  // Pages of other sites must not change state: refuse their requests with 403.
  bool origin_allowed = true;

  // The first header of that name; empty if there is none.
  std::string_view Header(std::string_view lower_case_name) const;
  // The first value of that query parameter.
  std::optional<std::string_view> Query(std::string_view name) const;
};

struct HttpServerReply {
  int status = 200;
  // Content-Length, Transfer-Encoding, Connection and Date are added; those given are ignored, but
  // for the Content-Length of a stream.
  HttpHeaders headers;
  std::string body;
};

// application/problem+json (RFC 9457) with `detail`.
HttpServerReply ProblemReply(int status, std::string_view detail);

// A reply whose body is sent while it is made: chunked, or as long as the Content-Length among its
// headers says. Dropping it before Finish closes the connection, so that the peer sees that the
// body is not whole.
class HttpReplyStream {
 public:
  virtual ~HttpReplyStream() = default;
  // Queues; never blocks. Small writes are sent together. False once the stream is closed (the peer
  // has gone, does not read, or the server stops) or finished; the bytes are dropped then. A
  // producer stops above its own limit of queued_bytes() and goes on in OnDrained; a connection
  // with more than HttpServerLimits::queued_bytes is closed. For HEAD nothing is sent.
  virtual bool Write(std::string_view bytes) = 0;
  // What the kernel has not taken yet.
  virtual size_t queued_bytes() const = 0;
  // Called whenever everything that was queued has gone to the kernel, until the stream ends.
  virtual void OnDrained(std::function<void()> fn) = 0;
  // Called once if the stream ends before Finish; at once if it has ended already.
  virtual void OnClosed(std::function<void()> fn) = 0;
  // The body is whole. No callbacks after it; the stream may be dropped.
  virtual void Finish() = 0;
};

// Dropping it closes the connection with code 1001.
class HttpWebSocket {
 public:
  virtual ~HttpWebSocket() = default;
  // Queues a text message, which must be UTF-8; never blocks. False once closed. Limits as
  // HttpReplyStream::Write.
  virtual bool Send(std::string text) = 0;
  // The same bytes to many without a copy for each.
  virtual bool SendShared(std::shared_ptr<const std::string> text) = 0;
  virtual size_t queued_bytes() const = 0;
  // Starts reading. `text` false: a binary message. The bytes are valid during the call; the next
  // message is not read before the call returns.
  virtual void OnMessage(std::function<void(std::string_view bytes, bool text)> fn) = 0;
  virtual void OnDrained(std::function<void()> fn) = 0;
  // Called once, last: the peer's close code and reason; 1006 if the connection broke, no ping was
  // answered or the server stopped. At once if it is closed already.
  virtual void OnClosed(std::function<void(uint16_t code, std::string reason)> fn) = 0;
  // Sends what is queued, then the closing handshake; gives up after 2 s. `reason` is cut to 120
  // bytes. OnClosed follows.
  virtual void Close(uint16_t code, std::string_view reason) = 0;
};

// Answered by the first call of Reply, Stream or AcceptWebSocket; dropping it unanswered answers
// with 500. It keeps the connection's place: pipelined requests wait.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual const HttpServerRequest& request() const = 0;
  // Whether the peer is gone, so that an answer would not be read.
  virtual bool closed() const = 0;
  // False if it was answered before. Headers with line breaks or NUL, or bad names, become 500.
  virtual bool Reply(HttpServerReply reply) = 0;
  // Null if it was answered before. Status and headers go at once.
  virtual std::shared_ptr<HttpReplyStream> Stream(int status, HttpHeaders headers) = 0;
  // `protocol`: one that the peer offers in Sec-WebSocket-Protocol, or empty. FailedPrecondition if
  // the request is none for a WebSocket or was answered before, PermissionDenied for an origin that
  // is not allowed, InvalidArgument for a protocol that was not offered; the exchange is not
  // answered then.
  virtual Result<std::shared_ptr<HttpWebSocket>> AcceptWebSocket(std::string_view protocol) = 0;
};

}  // namespace shoal::net
