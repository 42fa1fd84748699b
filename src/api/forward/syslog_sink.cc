// The sink for syslog: messages of RFC 5424, over TCP and TLS with counted octets (RFC 6587 3.4.1,
// RFC 5425), over UDP one message a datagram (RFC 5426). Syslog has no acknowledgements: what is in
// the buffers of a connection that breaks may be lost.

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "api/forward/log_sink.h"
#include "base/file.h"
#include "net/address.h"
#include "net/byte_channel.h"
#include "net/http_client.h"

namespace shoal::api {
namespace {

constexpr std::chrono::milliseconds kSendTime{30'000};
constexpr size_t kMaxFile = size_t{1} << 20;
// What a receiver should be able to take in a datagram (RFC 5426 3.2).
constexpr size_t kMaxDatagram = 2048;
// Facility user (1), severity informational (6).
constexpr int kPriority = 1 * 8 + 6;
constexpr size_t kMaxHost = 255;
constexpr size_t kMaxProcess = 128;

// Characters 33 to 126 only, as the header demands.
std::string HeaderWord(std::string_view text, size_t most) {
  std::string word;
  for (const char c : text.substr(0, most)) word += c > 32 && c < 127 ? c : '_';
  return word.empty() ? "-" : word;
}

std::string Parameter(std::string_view name, std::string_view value) {
  std::string text = " " + std::string(name) + "=\"";
  for (const char c : value) {
    if (c == '"' || c == '\\' || c == ']') text += '\\';
    text += c;
  }
  return text + '"';
}

std::string HostName() {
  char name[256] = {};
  (void)::gethostname(name, sizeof name - 1);
  return HeaderWord(name, kMaxHost);
}

std::vector<size_t> From(size_t first, size_t size) {
  std::vector<size_t> rest;
  for (size_t i = first; i < size; ++i) rest.push_back(i);
  return rest;
}

class StreamSink final : public LogSink {
 public:
  explicit StreamSink(std::unique_ptr<net::HttpClient> place) : place_(std::move(place)) {}

  SendOutcome Send(const std::vector<const ForwardLine*>& lines) override {
    const Status sent = SendFrames(lines);
    if (sent.ok()) return {};
    channel_.reset();
    return {From(0, lines.size()), 0, sent.message(), {}};
  }

 private:
  Status SendFrames(const std::vector<const ForwardLine*>& lines) {
    // A receiver that has closed is noticed before something is written to it.
    if (channel_ != nullptr) {
      char byte = 0;
      const net::ByteChannel::Step step = channel_->Read(&byte, 1);
      if (step.end || !step.error.ok()) channel_.reset();
    }
    if (channel_ == nullptr) {
      TRY_ASSIGN(channel_, place_->Connect(kSendTime));
    }
    std::string frames;
    for (const ForwardLine* line : lines) {
      const std::string message = RenderSyslog(*line, host_);
      frames += std::to_string(message.size()) + " " + message;
    }
    std::string_view left = frames;
    const net::Deadline deadline = std::chrono::steady_clock::now() + kSendTime;
    while (!left.empty()) {
      const net::ByteChannel::Step step = channel_->Write(left);
      if (!step.error.ok()) return step.error;
      if (step.end) return Unavailable("the receiver has closed the connection");
      left.remove_prefix(step.bytes);
      if (step.wait_for != 0) TRY(net::AwaitFd(channel_->fd(), step.wait_for, deadline));
    }
    return Status::Ok();
  }

  const std::unique_ptr<net::HttpClient> place_;  // for its connections
  const std::string host_ = HostName();
  std::unique_ptr<net::ByteChannel> channel_;
};

class DatagramSink final : public LogSink {
 public:
  explicit DatagramSink(net::HostPort place) : place_(std::move(place)) {}

  SendOutcome Send(const std::vector<const ForwardLine*>& lines) override {
    if (!socket_.valid()) {
      const Status opened = Open();
      if (!opened.ok()) return {From(0, lines.size()), 0, opened.message(), {}};
    }
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string message = RenderSyslog(*lines[i], host_).substr(0, kMaxDatagram);
      if (::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL) >= 0) continue;
      // ICMP's answer to an earlier datagram: the port is not open.
      const std::string why = std::strerror(errno);
      socket_.Reset();
      return {From(i, lines.size()), 0, why, {}};
    }
    return {};
  }

 private:
  Status Open() {
    addrinfo hints{};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    const int error =
        ::getaddrinfo(place_.host.c_str(), std::to_string(place_.port).c_str(), &hints, &found);
    if (error != 0)
      return Unavailable("the name " + place_.host + " does not resolve: " + ::gai_strerror(error));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      UniqueFd fd(::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      if (!fd.valid() || ::connect(fd.get(), one->ai_addr, one->ai_addrlen) != 0) continue;
      socket_ = std::move(fd);
      return Status::Ok();
    }
    return Unavailable("there is no route to " + place_.host);
  }

  const net::HostPort place_;
  const std::string host_ = HostName();
  UniqueFd socket_;
};

}  // namespace

std::string RenderSyslog(const ForwardLine& line, const std::string& host) {
  const std::string task = line.role + "-" + std::to_string(line.index);
  std::string text = "<" + std::to_string(kPriority) + ">1 " + FormatWall(line.time) + " " + host +
                     " shoal " + HeaderWord(line.job + "/" + task, kMaxProcess) +
                     " log [shoal@32473";
  text += Parameter("job", line.job) + Parameter("name", line.name);
  if (!line.team.empty()) text += Parameter("team", line.team);
  if (!line.user.empty()) text += Parameter("user", line.user);
  text += Parameter("engine", line.engine) + Parameter("task", task) +
          Parameter("attempt", std::to_string(line.attempt + 1)) +
          Parameter("offset", std::to_string(line.offset));
  return text + "] " + line.text;
}

Result<std::unique_ptr<LogSink>> MakeSyslogSink(const ForwarderConfig& config) {
  const size_t colon = config.url.find("://");
  const std::string scheme = config.url.substr(0, colon);
  const std::string place = colon == std::string::npos ? "" : config.url.substr(colon + 3);
  const auto parsed = net::ParseHostPort(place);
  const bool known = scheme == "tcp" || scheme == "tls" || scheme == "udp";
  if (!known || !parsed.ok())
    return InvalidArgument("got \"" + config.url +
                           "\", expected tcp://HOST:PORT, tls://HOST:PORT or udp://HOST:PORT");
  if (scheme == "udp") return std::unique_ptr<LogSink>(std::make_unique<DatagramSink>(*parsed));
  net::TlsOptions tls;
  if (!config.authorities_file.empty()) {
    TRY_ASSIGN(tls.authorities, ReadFile(config.authorities_file, kMaxFile));
  }
  TRY_ASSIGN(auto client,
             net::HttpClient::Make((scheme == "tls" ? "https://" : "http://") + place, tls));
  return std::unique_ptr<LogSink>(std::make_unique<StreamSink>(std::move(client)));
}

}  // namespace shoal::api
