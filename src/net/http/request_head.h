// The head of a request, strictly: whatever two programs could read in different ways (RFC 9112
// §11.2, request smuggling) is refused. For the HTTP server; no sockets here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http/server_exchange.h"

namespace shoal::net {

// Why a request is refused before its handler sees it.
struct HttpRefusal {
  int status = 400;
  std::string detail;
};

struct RequestHeadLimits {
  size_t bytes = 16 << 10;
  size_t count = 100;  // of headers
};

// How the body comes, and what becomes of the connection.
struct RequestFraming {
  bool http11 = true;
  bool keep_alive = true;
  bool chunked = false;
  uint64_t content_length = 0;  // 0 with `chunked`
  bool expect_continue = false;
  bool has_body() const { return chunked || content_length > 0; }
};

// Looks for the end of a head while it comes.
class HeadScanner {
 public:
  // `bytes` begins where it began in the last call. The length of the head with its empty line, 0
  // if it has not come yet. Bytes that no head may have (line feeds without a carriage return,
  // control characters) are refused when they come, as is a head that is too long.
  size_t Scan(std::string_view bytes, const RequestHeadLimits& limits,
              std::optional<HttpRefusal>* refusal);

 private:
  size_t seen_ = 0;        // bytes looked at
  size_t line_begin_ = 0;  // of the line that has not ended
};

// Of a head that HeadScanner has found, with its empty line. Fills all of `request` but the body,
// the peer and `origin_allowed`. Nothing: it is good.
std::optional<HttpRefusal> ParseRequestHead(std::string_view head, const RequestHeadLimits& limits,
                                            HttpServerRequest* request, RequestFraming* framing);

// Path and query of a target in origin form ("/a/b?c=d"), decoded into `request`.
std::optional<HttpRefusal> ParseRequestTarget(std::string_view target, HttpServerRequest* request);

// Whether the page of this Origin may use a server that was asked for as `host` (Host): it has the
// same host and port.
bool IsSameOrigin(std::string_view origin, std::string_view host);

// Whether `text` is a token of RFC 9110 (method, header name).
bool IsHttpToken(std::string_view text);

}  // namespace shoal::net
