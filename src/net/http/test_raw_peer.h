// A peer of the tests that sends what it likes.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "base/file.h"

namespace shoal::net {

class RawPeer {
 public:
  explicit RawPeer(uint16_t port, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0)
      ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }

  bool connected() const { return connected_; }
  int fd() const { return fd_.get(); }
  // False once the server has closed.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void EndWriting() { ::shutdown(fd_.get(), SHUT_WR); }

  // Until `end` has come, or the connection ended (ended() says so), or the limit has passed.
  std::string ReadUntil(std::string_view end, std::chrono::milliseconds limit = kLimit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    size_t searched = 0;  // where `end` does not begin
    while (!ended_ && (end.empty() || text_.find(end, searched) == std::string::npos)) {
      searched = text_.size() - std::min(text_.size(), end.size());
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd one{fd_.get(), POLLIN, 0};
      if (left.count() <= 0 || ::poll(&one, 1, static_cast<int>(left.count())) <= 0) break;
      char block[16384];
      const ssize_t got = ::recv(fd_.get(), block, sizeof block, 0);
      if (got <= 0) {
        ended_ = true;
      } else {
        text_.append(block, static_cast<size_t>(got));
      }
    }
    std::string all;
    const size_t found = end.empty() ? std::string::npos : text_.find(end);
    if (found == std::string::npos) {
      all.swap(text_);
    } else {
      all = text_.substr(0, found + end.size());
      text_.erase(0, found + end.size());
    }
    return all;
  }
  std::string ReadToEnd(std::chrono::milliseconds limit = kLimit) { return ReadUntil("", limit); }
  bool ended() const { return ended_; }

  static constexpr std::chrono::milliseconds kLimit{10'000};

 private:
  UniqueFd fd_;
  bool connected_ = false;
  bool ended_ = false;
  std::string text_;
};

// "200" of "HTTP/1.1 200 OK…"; empty if it is no answer.
inline std::string StatusOf(std::string_view reply) {
  return reply.starts_with("HTTP/1.1 ") ? std::string(reply.substr(9, 3)) : "";
}

}  // namespace shoal::net
