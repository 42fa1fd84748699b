// One request and its reply over a connection, for unix_http.cc and http_client.cc.
#pragma once

#include <memory>
#include <string>

#include "net/byte_channel.h"
#include "net/http.h"

namespace shoal::net {

// A stream that can give its connection away.
class HttpClientExchange : public HttpStream {
 public:
  // The connection, and in `early` what came with the reply's head. Nothing else may be called
  // after it.
  virtual std::unique_ptr<ByteChannel> Release(std::string* early) = 0;
  // The connection for the next request, when the whole reply was read and the server keeps it;
  // else null.
  virtual std::unique_ptr<ByteChannel> TakeForReuse() = 0;
};

// The request as it goes over the wire. `host`: of the header Host; `upgrade`: the protocol asked
// for, empty: none, and the connection is closed after the reply unless `keep_alive`.
std::string RenderRequest(const HttpRequest& request, const std::string& host,
                          const std::string& upgrade, bool keep_alive = false);

// Sends, and returns with the reply's head; interim replies (1xx, but for 101) are passed over.
// Unavailable if the connection was closed before anything came; DataLoss for what is not HTTP.
Result<std::unique_ptr<HttpClientExchange>> BeginExchange(std::unique_ptr<ByteChannel> channel,
                                                          std::string_view request,
                                                          Deadline deadline);

// The rest of a reply. ResourceExhausted over `max_body`.
Status ReadWholeBody(HttpStream* stream, Deadline deadline, size_t max_body, std::string* body);

}  // namespace shoal::net
