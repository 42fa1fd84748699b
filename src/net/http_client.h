// An HTTP/1.1 client over TCP and TLS for one server (a cluster's API server, in
// engine/kubernetes). One connection a call; calls block, with deadlines. What comes back is
// bounded. No redirects, no compression, no cookies.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "net/address_policy.h"
#include "net/byte_channel.h"
#include "net/http.h"
#include "net/tls.h"

namespace shoal::net {

// "https://HOST[:PORT][/PREFIX]", taken apart.
struct Url {
  bool tls = false;
  std::string host;  // without brackets
  uint16_t port = 0;
  std::string prefix;     // path without '/' at its end; often empty
  std::string user_info;  // "user:password", as it stands
};
// InvalidArgument says what is wrong with it.
Result<Url> ParseUrl(const std::string& text);
// The header Host of requests there: without the port that the scheme implies (RFC 9110, 7.2).
std::string FormatHost(const Url& url);

// A connection whose other side has agreed to speak another protocol on it.
struct UpgradedChannel {
  std::unique_ptr<ByteChannel> channel;
  std::string early;  // what came with the reply's head
  HttpReply head;
};

// Thread-safe.
class HttpClient {
 public:
  // `proxy`: http://[USER:PASSWORD@]HOST:PORT, through which the connection goes (CONNECT); empty:
  // none. `addresses`, where given, must outlive the client: connections to other addresses fail
  // with PermissionDenied; not together with a proxy, which resolves the name itself.
  static Result<std::unique_ptr<HttpClient>> Make(const std::string& url, const TlsOptions& tls,
                                                  const std::string& proxy = "",
                                                  const AddressPolicy* addresses = nullptr);

  const std::string& url() const { return text_; }
  // Of the header Host.
  std::string host() const;
  const std::string& prefix() const { return url_.prefix; }

  // The whole reply, whatever its status. Unavailable if no server listens, the name does not
  // resolve or the connection broke; DeadlineExceeded; Unauthenticated if its certificate is not
  // accepted; ResourceExhausted for a body over `max_body`; DataLoss for what is not HTTP.
  Result<HttpReply> Call(const HttpRequest& request, std::chrono::milliseconds timeout,
                         size_t max_body = kMaxHttpBody) const;
  // Returns with the reply's head; its body may be endless.
  Result<std::unique_ptr<HttpStream>> Open(const HttpRequest& request,
                                           std::chrono::milliseconds timeout) const;
  // With status 101 a connection; with any other the reply in `refusal` and FailedPrecondition.
  Result<UpgradedChannel> Upgrade(const HttpRequest& request, const std::string& protocol,
                                  std::chrono::milliseconds timeout, HttpReply* refusal) const;
  // A connection on which nothing was said.
  Result<std::unique_ptr<ByteChannel>> Connect(std::chrono::milliseconds timeout) const;

 private:
  HttpClient(std::string text, Url url, std::shared_ptr<const TlsContext> tls, Url proxy,
             const AddressPolicy* addresses)
      : text_(std::move(text)),
        url_(std::move(url)),
        tls_(std::move(tls)),
        proxy_(std::move(proxy)),
        addresses_(addresses) {}
  Result<std::unique_ptr<ByteChannel>> ConnectBy(Deadline deadline) const;

  const std::string text_;
  const Url url_;
  const std::shared_ptr<const TlsContext> tls_;
  const Url proxy_;                       // host empty: none
  const AddressPolicy* const addresses_;  // null: every address
};

}  // namespace shoal::net
