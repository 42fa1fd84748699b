// Requests to object servers: kept connections with a limit for each host, repeated with jitter
// when that may help, and redirected only where a source may lead. All stores over HTTP use it.
//
// The rule against server-side request forgery: a redirect of a source to another server may lead
// to addresses that are as public as the source or more so. A source on the internet leads only to
// the internet, one in a private network also to private addresses, and only one on this machine or
// a link-local address to such ones. The rule is applied to the resolved address immediately before
// the connection. Behind a proxy, which resolves names itself, it is applied to addresses alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "data/objects/object_context.h"
#include "net/address_policy.h"
#include "net/http.h"
#include "net/http/http_session.h"

namespace shoal::data {

// Statuses that stores ask for.
inline constexpr int kHttpOk = 200;
inline constexpr int kHttpCreated = 201;
inline constexpr int kHttpPartial = 206;
inline constexpr int kHttpNotFound = 404;
inline constexpr int kHttpPreconditionFailed = 412;
inline constexpr int kHttpNoSuchRange = 416;

// A request that can be made again: signatures contain the time.
using MakeRequest = std::function<Result<net::HttpRequest>(WallTime now)>;

struct TransportCall {
  std::string server;   // "https://HOST[:PORT]"
  MakeRequest request;  // its target is the path and query
  size_t max_body = 1 << 20;
  int redirects = 0;   // followed, with the rule above; else the reply is the redirect
  bool repeat = true;  // false: sending it twice may do harm
  // Of a redirected request: sent to the other server and not to the first.
  std::string redirect_body = {};
};

// Thread-safe.
class HttpTransport {
 public:
  // `authorities`: PEM of the certificate authorities; empty: those of the machine.
  HttpTransport(ObjectContext context, std::string authorities);
  ~HttpTransport();

  // The reply, whatever its status, but for those that stay 408, 429 or 5xx in all attempts: these
  // give Unavailable with the last status and the beginning of its body. Other errors as
  // HttpSession::Call; PermissionDenied for a redirect against the rule.
  Result<net::HttpReply> Run(const TransportCall& call);

  // Waits before the attempt after this one, as Run does.
  void Pause(int attempt) { context_.sleep(Delay(attempt, "")); }

  const ObjectContext& context() const { return context_; }

 private:
  struct Server;
  enum class Reach : uint8_t { kAny, kPrivate, kPublic };

  Result<Server*> Find(const std::string& url, Reach reach);
  Result<net::HttpReply> RunOnce(const TransportCall& call);
  Result<net::HttpReply> Exchange(const std::string& server, Reach reach,
                                  const net::HttpRequest& request, size_t max_body);
  std::chrono::milliseconds Delay(int attempt, const std::string& retry_after);
  Reach ReachOf(const std::string& url) const;
  Status CheckByProxy(const std::string& url, Reach reach) const;

  const ObjectContext context_;
  const std::string authorities_;
  const net::AddressPolicy public_only_;
  const net::AddressPolicy with_private_;

  Mutex mu_;
  std::map<std::string, std::unique_ptr<Server>> servers_ GUARDED_BY(mu_);
  std::mt19937_64 random_ GUARDED_BY(mu_);
};

// Where a redirect leads: the server and the target there. DataLoss if `location` is no URL of
// HTTP; FailedPrecondition if it gives up TLS.
struct RedirectTarget {
  std::string server;
  std::string target;
};
Result<RedirectTarget> ResolveRedirect(const std::string& server, const std::string& target,
                                       std::string location);

// Of an HTTP status that is not the expected one: NotFound, PermissionDenied, Unauthenticated, …
Status StatusOfHttp(int status, std::string message);

}  // namespace shoal::data
