#include "net/http/http_session.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <deque>
#include <utility>

#include "base/mutex.h"
#include "net/address.h"
#include "net/http_exchange.h"

namespace shoal::net {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

milliseconds Left(Deadline deadline) {
  return std::max(std::chrono::ceil<milliseconds>(deadline - SteadyClock::now()), milliseconds(0));
}

bool IsNamed(const std::string& name, std::string_view lower_case) {
  return name.size() == lower_case.size() &&
         std::equal(name.begin(), name.end(), lower_case.begin(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         });
}

// Whether sending it twice does what sending it once does.
bool IsIdempotent(const HttpRequest& request) {
  for (const char* method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
    if (request.method == method) return true;
  return std::any_of(request.headers.begin(), request.headers.end(),
                     [](const auto& header) { return IsNamed(header.first, "idempotency-key"); });
}

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// A server as redirects tell it apart, and a target there.
struct Location {
  bool tls = false;
  std::string host;  // "HOST:PORT"
  std::string target;
  std::string url() const { return (tls ? "https://" : "http://") + host; }
};

// `text` of a header Location, seen from `here`.
Result<Location> Resolve(const Location& here, std::string text) {
  text.erase(std::min(text.find('#'), text.size()));
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f)
      return DataLoss("the redirect's Location is no URL");
  }
  Location there = here;
  if (text.starts_with("//")) text.insert(0, here.tls ? "https:" : "http:");
  if (text.starts_with("http://") || text.starts_with("https://")) {
    const size_t begin = text.find("://") + 3;
    const size_t end = std::min(text.find_first_of("/?", begin), text.size());
    const auto url = ParseUrl(text.substr(0, end));
    if (!url.ok() || !url->user_info.empty()) return DataLoss("the redirect's Location is no URL");
    there.tls = url->tls;
    there.host = FormatHostPort(url->host, url->port);
    text.erase(0, end);
    there.target = text.starts_with('/') ? text : "/" + text;
    return there;
  }
  if (text.empty()) return DataLoss("the redirect has no Location");
  if (text.find(':') < text.find_first_of("/?"))
    return DataLoss("the redirect's Location is no URL of HTTP");
  if (text.starts_with('/')) {
    there.target = text;
  } else {
    const std::string path = here.target.substr(0, here.target.find('?'));
    there.target = text.starts_with('?') ? path + text : path.substr(0, path.rfind('/') + 1) + text;
  }
  return there;
}

// The request of the next hop: without what is meant for this server alone, if it is another.
void Follow(int status, bool other_server, HttpRequest* request) {
  if ((status == 303 && request->method != "HEAD") ||
      ((status == 301 || status == 302) && request->method == "POST")) {
    request->method = "GET";
    request->body.clear();
    std::erase_if(request->headers,
                  [](const auto& header) { return IsNamed(header.first, "content-type"); });
  }
  if (!other_server) return;
  std::erase_if(request->headers, [](const auto& header) {
    return IsNamed(header.first, "authorization") || IsNamed(header.first, "cookie") ||
           IsNamed(header.first, "proxy-authorization");
  });
}

}  // namespace

struct HttpSession::Impl {
  struct Idle {
    std::unique_ptr<ByteChannel> channel;
    TimePoint since;
  };
  struct Server {
    std::unique_ptr<HttpClient> client;
    std::deque<Idle> idle;  // the one used last is at the end
  };

  std::string text;
  HttpSessionOptions options;
  Location home;  // its target is the prefix
  Mutex mu;
  std::map<std::string, Server> servers;  // by URL without path
  std::atomic<size_t> made{0};

  Result<Server*> Find(const Location& place) {
    const MutexLock lock(mu);
    const auto found = servers.find(place.url());
    if (found != servers.end()) return &found->second;
    TlsOptions tls = options.tls;
    if (place.url() != home.url()) {
      tls = TlsOptions();
      tls.authorities = options.tls.authorities;
    }
    TRY_ASSIGN(auto client, HttpClient::Make(place.url(), tls, options.proxy, options.addresses));
    Server& server = servers[place.url()];
    server.client = std::move(client);
    return &server;
  }

  // A kept connection on which nothing has come meanwhile, not even its end; null: none.
  std::unique_ptr<ByteChannel> TakeIdle(Server* server) {
    const MutexLock lock(mu);
    const TimePoint now = options.clock->Now();
    while (!server->idle.empty() && now - server->idle.front().since > options.idle_time)
      server->idle.pop_front();
    while (!server->idle.empty()) {
      auto channel = std::move(server->idle.back().channel);
      server->idle.pop_back();
      pollfd one{channel->fd(), POLLIN, 0};
      if (!channel->HasPending() && ::poll(&one, 1, 0) == 0) return channel;
    }
    return nullptr;
  }

  void Keep(Server* server, std::unique_ptr<ByteChannel> channel) {
    if (channel == nullptr) return;
    const MutexLock lock(mu);
    server->idle.push_back({std::move(channel), options.clock->Now()});
    if (server->idle.size() > options.idle_connections) server->idle.pop_front();
  }

  // Sends over a kept connection, or a new one.
  Result<std::unique_ptr<HttpClientExchange>> Begin(Server* server, const HttpRequest& request,
                                                    bool keep_alive, Deadline deadline) {
    const std::string bytes = RenderRequest(request, server->client->host(), "", keep_alive);
    if (auto channel = TakeIdle(server)) {
      auto exchange = BeginExchange(std::move(channel), bytes, deadline);
      if (exchange.ok() || exchange.status().code() != Code::kUnavailable || !IsIdempotent(request))
        return exchange;
    }
    TRY_ASSIGN(auto channel, server->client->Connect(Left(deadline)));
    ++made;
    return BeginExchange(std::move(channel), bytes, deadline);
  }

  // Whether the redirect may be followed.
  Status Check(const Location& from, const Location& to) const {
    if (from.tls && !to.tls)
      return FailedPrecondition("the redirect from " + from.url() + " to " + to.url() +
                                " gives up TLS, and is not followed");
    if (to.url() == home.url() || to.url() == from.url()) return Status::Ok();
    const auto& allowed = options.redirect_hosts;
    if (std::find(allowed.begin(), allowed.end(), to.host) != allowed.end()) return Status::Ok();
    return FailedPrecondition("the redirect from " + from.url() + " to " + to.url() +
                              " leads to another server, and is not followed");
  }

  // The reply that is none to be followed, and its server.
  Result<std::pair<std::unique_ptr<HttpClientExchange>, Server*>> Run(HttpRequest request,
                                                                      bool keep_alive,
                                                                      Deadline deadline) {
    Location place = home;
    place.target = home.target + request.target;
    for (int hop = 0;; ++hop) {
      TRY_ASSIGN(Server * server, Find(place));
      request.target = place.target;
      auto begun = Begin(server, request, keep_alive, deadline);
      if (!begun.ok()) return begun.status().With(place.url());
      const HttpReply& head = (*begun)->head();
      const std::string location = head.Header("location");
      if (!IsRedirect(head.status) || location.empty() || options.redirects == 0)
        return std::pair(std::move(*begun), server);
      if (hop == options.redirects)
        return FailedPrecondition(text + " redirects more than " +
                                  std::to_string(options.redirects) + " times");
      TRY_ASSIGN(Location next, Resolve(place, location));
      TRY(Check(place, next));
      const int status = head.status;
      std::string dropped;
      constexpr size_t kMostDropped = 64 << 10;
      if (ReadWholeBody(begun->get(), deadline, kMostDropped, &dropped).ok())
        Keep(server, (*begun)->TakeForReuse());
      Follow(status, next.url() != home.url(), &request);
      place = std::move(next);
    }
  }
};

HttpSession::HttpSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpSession::~HttpSession() = default;

const std::string& HttpSession::url() const { return impl_->text; }
size_t HttpSession::connections_made() const { return impl_->made; }

Result<std::unique_ptr<HttpSession>> HttpSession::Make(const std::string& url,
                                                       HttpSessionOptions options) {
  TRY_ASSIGN(const Url parsed, ParseUrl(url));
  auto impl = std::make_unique<Impl>();
  impl->text = url;
  impl->options = std::move(options);
  impl->home = {parsed.tls, FormatHostPort(parsed.host, parsed.port), parsed.prefix};
  TRY(impl->Find(impl->home).status());
  return std::unique_ptr<HttpSession>(new HttpSession(std::move(impl)));
}

Result<HttpReply> HttpSession::Call(const HttpRequest& request, milliseconds timeout,
                                    size_t max_body) {
  const Deadline deadline = SteadyClock::now() + timeout;
  TRY_ASSIGN(auto run, impl_->Run(request, true, deadline));
  HttpReply reply = run.first->head();
  TRY(ReadWholeBody(run.first.get(), deadline, max_body, &reply.body).With(impl_->text));
  impl_->Keep(run.second, run.first->TakeForReuse());
  return reply;
}

Result<std::unique_ptr<HttpStream>> HttpSession::Open(const HttpRequest& request,
                                                      milliseconds timeout) {
  TRY_ASSIGN(auto run, impl_->Run(request, false, SteadyClock::now() + timeout));
  return std::unique_ptr<HttpStream>(std::move(run.first));
}

}  // namespace shoal::net
