#include "net/http_client.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/base64.h"
#include "net/address.h"
#include "net/http_exchange.h"
#include "net/tcp_keep_alive.h"

namespace shoal::net {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr size_t kMaxRefusal = 64 << 10;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

Result<UniqueFd> ConnectTo(const addrinfo& address, Deadline deadline) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot make a socket");
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  SetKeepAlive(fd.get(), kLongestPause);
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  int error = errno;
  if (error == EINPROGRESS) {
    TRY(AwaitFd(fd.get(), POLLOUT, deadline));
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error == 0) return fd;
  if (error == ECONNREFUSED) return Unavailable("no server listens there");
  return Unavailable(std::strerror(error));
}

// Each of the name's addresses in its turn. The resolver has deadlines of its own. `allowed`: null
// for every address.
Result<UniqueFd> Dial(const std::string& host, uint16_t port, Deadline deadline,
                      const AddressPolicy* allowed) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  if (error != 0)
    return Unavailable("the name " + host + " does not resolve: " + ::gai_strerror(error));
  Status last = Unavailable("no address");
  for (const addrinfo* one = list.get(); one != nullptr; one = one->ai_next) {
    const Status permitted = allowed == nullptr ? Status::Ok() : allowed->Check(*one->ai_addr);
    if (!permitted.ok()) {
      last = permitted;
      continue;
    }
    auto fd = ConnectTo(*one, deadline);
    if (fd.ok()) return fd;
    last = fd.status();
  }
  return last;
}

// Asks a proxy for a way to the server: byte by byte, so that nothing of what follows is taken.
Status AskProxy(ByteChannel* channel, const Url& proxy, const std::string& target,
                Deadline deadline) {
  std::string text = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n";
  if (!proxy.user_info.empty())
    text += "Proxy-Authorization: Basic " + EncodeBase64(proxy.user_info) + "\r\n";
  TRY(SendAll(channel, text + "\r\n", deadline));
  constexpr size_t kMaxHead = 16 << 10;
  std::string head;
  while (!head.ends_with("\r\n\r\n")) {
    char byte = 0;
    TRY_ASSIGN(const size_t got, ReadSome(channel, &byte, 1, deadline));
    if (got == 0 || head.size() >= kMaxHead) return Unavailable("the proxy's answer is no HTTP");
    head += byte;
  }
  const std::string first = head.substr(0, head.find('\r'));
  const size_t blank = first.find(' ');
  if (blank != std::string::npos && first.compare(blank + 1, 3, "200") == 0) return Status::Ok();
  return Unavailable("the proxy refuses: " + first.substr(0, 200));
}

}  // namespace

Result<Url> ParseUrl(const std::string& text) {
  const auto wrong = [&](const std::string& what) {
    return InvalidArgument("got \"" + text.substr(0, 200) + "\", " + what);
  };
  Url url;
  std::string rest = text;
  if (rest.starts_with("https://")) {
    url.tls = true;
    rest.erase(0, 8);
  } else if (rest.starts_with("http://")) {
    rest.erase(0, 7);
  } else {
    return wrong("expected https://HOST:PORT");
  }
  for (const char c : rest) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '?' || c == '#')
      return wrong("expected no blanks, '?' or '#' in it");
  }
  const size_t slash = rest.find('/');
  if (slash != std::string::npos) {
    url.prefix = rest.substr(slash);
    rest.erase(slash);
    while (url.prefix.ends_with('/')) url.prefix.pop_back();
  }
  if (const size_t at = rest.rfind('@'); at != std::string::npos) {
    url.user_info = rest.substr(0, at);
    rest.erase(0, at + 1);
  }
  const size_t bracket = rest.rfind(']');
  const size_t colon = rest.rfind(':');
  const bool has_port =
      colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  const auto place = ParseHostPort(has_port ? rest : rest + (url.tls ? ":443" : ":80"));
  if (!place.ok()) return wrong(place.status().message());
  url.host = place->host;
  url.port = place->port;
  return url;
}

Result<std::unique_ptr<HttpClient>> HttpClient::Make(const std::string& url, const TlsOptions& tls,
                                                     const std::string& proxy,
                                                     const AddressPolicy* addresses) {
  TRY_ASSIGN(const Url parsed, ParseUrl(url));
  Url through;
  if (!proxy.empty()) {
    auto parsed_proxy = ParseUrl(proxy);
    if (!parsed_proxy.ok() || parsed_proxy->tls) {
      return InvalidArgument("proxy: got \"" + proxy.substr(0, proxy.find("://")) +
                             "://…\", expected http://HOST:PORT");
    }
    through = *parsed_proxy;
  }
  std::shared_ptr<const TlsContext> context;
  if (parsed.tls) {
    TRY_ASSIGN(context, TlsContext::Make(tls));
  }
  return std::unique_ptr<HttpClient>(
      new HttpClient(url, parsed, std::move(context), std::move(through), addresses));
}

std::string FormatHost(const Url& url) {
  const std::string whole = FormatHostPort(url.host, url.port);
  const std::string_view implied = url.tls ? ":443" : ":80";
  return whole.ends_with(implied) ? whole.substr(0, whole.size() - implied.size()) : whole;
}

std::string HttpClient::host() const { return FormatHost(url_); }

Result<std::unique_ptr<ByteChannel>> HttpClient::ConnectBy(Deadline deadline) const {
  const bool direct = proxy_.host.empty();
  const std::string at = direct ? text_ : text_ + " (by the proxy " + proxy_.host + ")";
  auto fd = Dial(direct ? url_.host : proxy_.host, direct ? url_.port : proxy_.port, deadline,
                 direct ? addresses_ : nullptr);
  if (!fd.ok()) return fd.status().With(at);
  if (!direct) {
    // The channel owns its socket, and TLS wants it afterwards.
    const auto plain = PlainByteChannel(UniqueFd(::dup(fd->get())));
    const Status asked =
        AskProxy(plain.get(), proxy_, FormatHostPort(url_.host, url_.port), deadline);
    if (!asked.ok()) return asked.With(at);
  }
  if (tls_ == nullptr) return PlainByteChannel(std::move(*fd));
  auto channel = tls_->Connect(std::move(*fd), url_.host, deadline);
  if (!channel.ok()) return channel.status().With(at);
  return channel;
}

Result<std::unique_ptr<ByteChannel>> HttpClient::Connect(milliseconds timeout) const {
  return ConnectBy(SteadyClock::now() + timeout);
}

Result<HttpReply> HttpClient::Call(const HttpRequest& request, milliseconds timeout,
                                   size_t max_body) const {
  const Deadline deadline = SteadyClock::now() + timeout;
  TRY_ASSIGN(auto channel, ConnectBy(deadline));
  auto stream = BeginExchange(std::move(channel), RenderRequest(request, host(), ""), deadline);
  if (!stream.ok()) return stream.status().With(text_);
  HttpReply reply = (*stream)->head();
  TRY(ReadWholeBody(stream->get(), deadline, max_body, &reply.body).With(text_));
  return reply;
}

Result<std::unique_ptr<HttpStream>> HttpClient::Open(const HttpRequest& request,
                                                     milliseconds timeout) const {
  const Deadline deadline = SteadyClock::now() + timeout;
  TRY_ASSIGN(auto channel, ConnectBy(deadline));
  auto stream = BeginExchange(std::move(channel), RenderRequest(request, host(), ""), deadline);
  if (!stream.ok()) return stream.status().With(text_);
  return std::unique_ptr<HttpStream>(std::move(*stream));
}

Result<UpgradedChannel> HttpClient::Upgrade(const HttpRequest& request, const std::string& protocol,
                                            milliseconds timeout, HttpReply* refusal) const {
  const Deadline deadline = SteadyClock::now() + timeout;
  TRY_ASSIGN(auto channel, ConnectBy(deadline));
  auto stream =
      BeginExchange(std::move(channel), RenderRequest(request, host(), protocol), deadline);
  if (!stream.ok()) return stream.status().With(text_);
  UpgradedChannel upgraded;
  upgraded.head = (*stream)->head();
  constexpr int kSwitching = 101;
  if (upgraded.head.status == kSwitching) {
    upgraded.channel = (*stream)->Release(&upgraded.early);
    return upgraded;
  }
  *refusal = upgraded.head;
  TRY(ReadWholeBody(stream->get(), deadline, kMaxRefusal, &refusal->body).With(text_));
  return FailedPrecondition("got status " + std::to_string(refusal->status) +
                            " instead of a connection");
}

}  // namespace shoal::net
