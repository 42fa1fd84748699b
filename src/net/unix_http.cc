// Connections and deadlines are by hand (poll); what is HTTP about the reply is Beast's parser.
#include "net/unix_http.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cctype>
#include <cerrno>
#include <cstring>

namespace shoal::net {
namespace {

namespace http = boost::beast::http;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;
using Deadline = SteadyClock::time_point;

constexpr uint32_t kMaxHead = 64 << 10;
constexpr size_t kBlock = 64 << 10;

// OK when `fd` is ready for `events`.
Status Await(int fd, short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - SteadyClock::now()).count();
    if (left <= 0) return DeadlineExceeded("no answer in time");
    pollfd one{fd, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::min<int64_t>(left, INT32_MAX)));
    if (ready > 0) return Status::Ok();
    if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "poll");
  }
}

Result<UniqueFd> Connect(const std::string& path, Deadline deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return InvalidArgument("the socket's path \"" + path + "\" is empty or too long");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot make a socket");
  while (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EINTR) continue;
    if (errno == ECONNREFUSED) return Unavailable(path + ": nobody listens there");
    if (errno != EAGAIN) return ErrnoStatus(errno, path);
    // Its queue of connections is full.
    if (SteadyClock::now() >= deadline) return DeadlineExceeded(path + ": it does not accept");
    ::poll(nullptr, 0, 5);
  }
  return fd;
}

std::string Render(const HttpRequest& request, bool upgrade) {
  std::string text = request.method + " " + request.target + " HTTP/1.1\r\nHost: localhost\r\n";
  text += upgrade ? "Connection: Upgrade\r\nUpgrade: tcp\r\n" : "Connection: close\r\n";
  for (const auto& [name, value] : request.headers) text += name + ": " + value + "\r\n";
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT")
    text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  return text + "\r\n" + request.body;
}

Status Send(int fd, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    TRY(Await(fd, POLLOUT, deadline));
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    // It may have answered already, and closed: the answer says why.
    if (sent < 0 && errno == EPIPE) return Status::Ok();
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
      return Unavailable(std::string("the connection broke: ") + std::strerror(errno));
  }
  return Status::Ok();
}

class Stream final : public HttpStream {
 public:
  explicit Stream(UniqueFd fd) : fd_(std::move(fd)) {
    parser_.header_limit(kMaxHead);
    parser_.body_limit(boost::none);  // taken out as it comes
    parser_.eager(true);
  }

  Status ReadHead(Deadline deadline) {
    while (!parser_.is_header_done()) TRY(ReadSome(deadline));
    const auto& message = parser_.get();
    head_.status = static_cast<int>(message.result_int());
    for (const auto& field : message) {
      std::string name(field.name_string());
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      head_.headers.emplace_back(std::move(name), std::string(field.value()));
    }
    return Status::Ok();
  }

  const HttpReply& head() const override { return head_; }

  Result<std::string> Next(milliseconds timeout) override {
    const Deadline deadline = SteadyClock::now() + timeout;
    while (parser_.get().body().empty()) {
      if (parser_.is_done()) return std::string();
      TRY(ReadSome(deadline));
    }
    return std::exchange(parser_.get().body(), {});
  }

  void Cancel() override {
    cancelled_ = true;
    ::shutdown(fd_.get(), SHUT_RDWR);
  }

  Upgraded Release() { return {std::move(fd_), std::move(input_)}; }

 private:
  Status ReadSome(Deadline deadline) {
    if (cancelled_) return Cancelled("the call was ended");
    TRY(Await(fd_.get(), POLLIN, deadline));
    const size_t before = input_.size();
    input_.resize(before + kBlock);
    const ssize_t got = ::recv(fd_.get(), input_.data() + before, kBlock, 0);
    const int error = errno;
    input_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (cancelled_) return Cancelled("the call was ended");
    if (got < 0 && error != EAGAIN && error != EINTR)
      return Unavailable(std::string("the connection broke: ") + std::strerror(error));
    return got == 0 ? TakeEnd() : Parse();
  }

  Status TakeEnd() {
    if (!parser_.got_some()) return Unavailable("the connection was closed without an answer");
    boost::system::error_code error;
    parser_.put_eof(error);
    if (error) return Unavailable("the connection broke in the middle of an answer");
    return Status::Ok();
  }

  Status Parse() {
    while (!input_.empty() && !parser_.is_done()) {
      boost::system::error_code error;
      const size_t taken = parser_.put(boost::asio::buffer(input_), error);
      input_.erase(0, taken);
      if (error == http::error::need_more) return Status::Ok();
      if (error) return DataLoss("the answer is not HTTP: " + error.message());
      if (taken == 0) return Status::Ok();
    }
    return Status::Ok();
  }

  UniqueFd fd_;
  http::response_parser<http::string_body> parser_;
  std::string input_;  // come, not parsed
  HttpReply head_;
  std::atomic<bool> cancelled_{false};
};

Result<std::unique_ptr<Stream>> Begin(const std::string& path, const HttpRequest& request,
                                      bool upgrade, Deadline deadline) {
  TRY_ASSIGN(UniqueFd fd, Connect(path, deadline));
  TRY(Send(fd.get(), Render(request, upgrade), deadline));
  auto stream = std::make_unique<Stream>(std::move(fd));
  TRY(stream->ReadHead(deadline));
  return stream;
}

Status ReadBody(HttpStream* stream, Deadline deadline, size_t max_body, std::string* body) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - SteadyClock::now());
    TRY_ASSIGN(const std::string part, stream->Next(std::max(left, milliseconds(0))));
    if (part.empty()) return Status::Ok();
    if (body->size() + part.size() > max_body)
      return ResourceExhausted("the answer is longer than " + std::to_string(max_body) + " bytes");
    *body += part;
  }
}

}  // namespace

std::string HttpReply::Header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return "";
}

Result<HttpReply> UnixHttp::Call(const HttpRequest& request, milliseconds timeout,
                                 size_t max_body) const {
  const Deadline deadline = SteadyClock::now() + timeout;
  TRY_ASSIGN(const auto stream, Begin(path_, request, false, deadline));
  HttpReply reply = stream->head();
  TRY(ReadBody(stream.get(), deadline, max_body, &reply.body));
  return reply;
}

Result<std::unique_ptr<HttpStream>> UnixHttp::Open(const HttpRequest& request,
                                                   milliseconds timeout) const {
  TRY_ASSIGN(auto stream, Begin(path_, request, false, SteadyClock::now() + timeout));
  return std::unique_ptr<HttpStream>(std::move(stream));
}

Result<Upgraded> UnixHttp::Upgrade(const HttpRequest& request, milliseconds timeout) const {
  const Deadline deadline = SteadyClock::now() + timeout;
  TRY_ASSIGN(const auto stream, Begin(path_, request, true, deadline));
  constexpr int kSwitching = 101;
  if (stream->head().status == kSwitching) return stream->Release();
  std::string body;
  TRY(ReadBody(stream.get(), deadline, kMaxHead, &body));
  return FailedPrecondition("got status " + std::to_string(stream->head().status) +
                            " instead of a connection: " + body);
}

std::string PercentEncode(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

}  // namespace shoal::net
