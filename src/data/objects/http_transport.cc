#include "data/objects/http_transport.h"

#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "net/address.h"
#include "net/http/proxy_environment.h"
#include "net/http_client.h"

namespace shoal::data {
namespace {

using std::chrono::milliseconds;

// Networks of organisations; with these allowed a policy still refuses loopback, link-local,
// multicast and reserved addresses.
const std::vector<std::string> kPrivateNetworks = {
    "10.0.0.0/8",    "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16",
    "198.18.0.0/15", "192.0.0.0/24",  "fc00::/7"};

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

bool IsWorthRepeating(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
         status == 504;
}

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// "https://h: https://h: it is so" → "https://h: it is so": client and session name the server.
Status WithoutRepeated(const Status& status) {
  const std::string& text = status.message();
  const std::string first = text.substr(0, text.find(": ") + 2);
  if (!text.starts_with(first + first)) return status;
  return {status.code(), text.substr(first.size())};
}

std::string Beginning(const std::string& body) {
  constexpr size_t kMost = 200;
  std::string text;
  for (const char c : body.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  return text;
}

}  // namespace

// A session to one server, and the number of requests that may still be sent to it.
struct HttpTransport::Server {
  std::unique_ptr<net::HttpSession> session;
  Mutex mu;
  CondVar freed;
  int free GUARDED_BY(mu) = 0;

  class Turn {
   public:
    explicit Turn(Server* server) : server_(server) {
      MutexLock lock(server_->mu);
      while (server_->free == 0) server_->freed.wait(lock);
      --server_->free;
    }
    ~Turn() {
      {
        const MutexLock lock(server_->mu);
        ++server_->free;
      }
      server_->freed.notify_one();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Server* const server_;
  };
};

HttpTransport::HttpTransport(ObjectContext context, std::string authorities)
    : context_(std::move(context)),
      authorities_(std::move(authorities)),
      public_only_(net::AddressPolicy::Make({}).value()),
      with_private_(net::AddressPolicy::Make(kPrivateNetworks).value()),
      random_(context_.seed) {}

HttpTransport::~HttpTransport() = default;

Result<HttpTransport::Server*> HttpTransport::Find(const std::string& url, Reach reach) {
  const MutexLock lock(mu_);
  std::unique_ptr<Server>& server = servers_[fmt::format("{} {}", static_cast<int>(reach), url)];
  if (server != nullptr) return server.get();
  net::HttpSessionOptions options;
  options.tls.authorities = authorities_;
  options.proxy = net::ProxyFromEnvironment(url, context_.env);
  options.redirects = 0;
  options.idle_connections = static_cast<size_t>(context_.connections_per_host);
  options.clock = context_.clock;
  if (options.proxy.empty() && reach != Reach::kAny)
    options.addresses = reach == Reach::kPublic ? &public_only_ : &with_private_;
  auto made = std::make_unique<Server>();
  TRY_ASSIGN(made->session, net::HttpSession::Make(url, std::move(options)));
  {
    const MutexLock of_made(made->mu);
    made->free = std::max(1, context_.connections_per_host);
  }
  server = std::move(made);
  return server.get();
}

// Of several addresses the most public one decides.
HttpTransport::Reach HttpTransport::ReachOf(const std::string& url) const {
  const auto parsed = net::ParseUrl(url);
  addrinfo* found = nullptr;
  if (!parsed.ok() || ::getaddrinfo(parsed->host.c_str(), nullptr, nullptr, &found) != 0)
    return Reach::kPublic;
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  Reach reach = Reach::kAny;
  for (const addrinfo* one = list.get(); one != nullptr; one = one->ai_next) {
    if (public_only_.Check(*one->ai_addr).ok()) return Reach::kPublic;
    if (with_private_.Check(*one->ai_addr).ok()) reach = Reach::kPrivate;
  }
  return reach;
}

Status HttpTransport::CheckByProxy(const std::string& url, Reach reach) const {
  if (reach == Reach::kAny || net::ProxyFromEnvironment(url, context_.env).empty())
    return Status::Ok();
  TRY_ASSIGN(const net::Url parsed, net::ParseUrl(url));
  if (parsed.host == "localhost" || parsed.host.ends_with(".localhost"))
    return PermissionDenied("the name " + parsed.host + " is of this machine");
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (::getaddrinfo(parsed.host.c_str(), nullptr, &hints, &found) != 0) return Status::Ok();
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  const net::AddressPolicy& policy = reach == Reach::kPublic ? public_only_ : with_private_;
  return policy.Check(*list->ai_addr);
}

Result<net::HttpReply> HttpTransport::Exchange(const std::string& server, Reach reach,
                                               const net::HttpRequest& request, size_t max_body) {
  TRY(CheckByProxy(server, reach));
  TRY_ASSIGN(Server * to, Find(server, reach));
  const Server::Turn turn(to);
  auto reply = to->session->Call(request, context_.retry.timeout, max_body);
  return reply.ok() ? std::move(reply) : Result<net::HttpReply>(WithoutRepeated(reply.status()));
}

Result<net::HttpReply> HttpTransport::RunOnce(const TransportCall& call) {
  TRY_ASSIGN(net::HttpRequest request, call.request(context_.clock->Wall()));
  std::string server = call.server;
  Reach reach = Reach::kAny;
  for (int hop = 0;; ++hop) {
    Result<net::HttpReply> got = Exchange(server, reach, request, call.max_body);
    if (!got.ok() && hop > 0) return got.status().With("the redirect of " + call.server);
    TRY_ASSIGN(net::HttpReply reply, std::move(got));
    const std::string location = reply.Header("location");
    if (!IsRedirect(reply.status) || location.empty() || call.redirects == 0) return reply;
    if (hop == call.redirects)
      return FailedPrecondition(fmt::format("{} redirects more than {} times", call.server, hop));
    TRY_ASSIGN(RedirectTarget next, ResolveRedirect(server, request.target, location));
    // A redirect along the chain is measured against the source, which chose the others.
    reach = next.server == call.server ? Reach::kAny : ReachOf(call.server);
    if (next.server != call.server)
      std::erase_if(request.headers, [](const auto& one) { return one.first == "Authorization"; });
    server = std::move(next.server);
    request.target = std::move(next.target);
    if (!call.redirect_body.empty()) request.body = call.redirect_body;
  }
}

milliseconds HttpTransport::Delay(int attempt, const std::string& retry_after) {
  const RetryPolicy& policy = context_.retry;
  milliseconds delay = policy.first;
  for (int i = 1; i < attempt && delay < policy.most; ++i) delay *= 2;
  delay = std::min(delay, policy.most);
  {
    const MutexLock lock(mu_);
    std::uniform_int_distribution<int64_t> part(delay.count() / 2, delay.count());
    delay = milliseconds(part(random_));
  }
  int64_t seconds = 0;
  const char* const end = retry_after.data() + retry_after.size();
  const auto parsed = std::from_chars(retry_after.data(), end, seconds);
  if (parsed.ec == std::errc() && parsed.ptr == end && seconds > 0 && seconds < 3600)
    delay = std::max(delay, std::min<milliseconds>(std::chrono::seconds(seconds), policy.most));
  return delay;
}

Result<net::HttpReply> HttpTransport::Run(const TransportCall& call) {
  const int attempts = call.repeat ? std::max(1, context_.retry.attempts) : 1;
  for (int attempt = 1;; ++attempt) {
    Result<net::HttpReply> reply = RunOnce(call);
    const bool passing =
        reply.ok() ? IsWorthRepeating(reply->status)
                   : reply.status().retryable() || reply.status().code() == Code::kDeadlineExceeded;
    if (!passing) return reply;
    if (attempt < attempts) {
      context_.sleep(Delay(attempt, reply.ok() ? reply->Header("retry-after") : ""));
      continue;
    }
    const std::string tries = attempts == 1 ? "" : fmt::format(" ({} attempts)", attempts);
    if (!reply.ok()) return Unavailable(reply.status().message() + tries);
    return Unavailable(fmt::format("{} answers {}: {}{}", call.server, reply->status,
                                   Beginning(reply->body), tries));
  }
}

Result<RedirectTarget> ResolveRedirect(const std::string& server, const std::string& target,
                                       std::string location) {
  constexpr size_t kMost = 16 << 10;
  location.erase(std::min(location.find('#'), location.size()));
  const bool plain = std::ranges::all_of(location, [](char c) {
    return static_cast<unsigned char>(c) > ' ' && static_cast<unsigned char>(c) < 0x7f;
  });
  if (location.empty() || location.size() > kMost || !plain)
    return DataLoss("the redirect of " + server + " leads to no URL");
  const bool tls = server.starts_with("https://");
  if (location.starts_with("//")) location.insert(0, tls ? "https:" : "http:");
  if (location.starts_with("http://") || location.starts_with("https://")) {
    const size_t begin = location.find("://") + 3;
    const size_t end = std::min(location.find_first_of("/?", begin), location.size());
    const auto url = net::ParseUrl(location.substr(0, end));
    if (!url.ok() || !url->user_info.empty())
      return DataLoss("the redirect of " + server + " leads to no URL");
    if (tls && !url->tls)
      return FailedPrecondition("the redirect of " + server + " gives up TLS, and is not followed");
    std::string rest = location.substr(end);
    if (!rest.starts_with('/')) rest.insert(0, "/");
    return RedirectTarget{
        (url->tls ? "https://" : "http://") + net::FormatHostPort(url->host, url->port),
        std::move(rest)};
  }
  if (location.find(':') < location.find_first_of("/?"))
    return DataLoss("the redirect of " + server + " leads to no URL of HTTP");
  if (location.starts_with('/')) return RedirectTarget{server, std::move(location)};
  const std::string path = target.substr(0, target.find('?'));
  if (location.starts_with('?')) return RedirectTarget{server, path + location};
  return RedirectTarget{server, path.substr(0, path.rfind('/') + 1) + location};
}

Status StatusOfHttp(int status, std::string message) {
  switch (status) {
    case 401:
      return Unauthenticated(std::move(message));
    case 403:
      return PermissionDenied(std::move(message));
    case 404:
    case 410:
      return NotFound(std::move(message));
    case 400:
      return InvalidArgument(std::move(message));
    case 405:
    case 501:
      return Unimplemented(std::move(message));
    case 409:
      return Aborted(std::move(message));
    case 507:
      return ResourceExhausted(std::move(message));
    default:
      return status >= 500 ? Unavailable(std::move(message))
                           : FailedPrecondition(std::move(message));
  }
}

}  // namespace shoal::data
