#include "engine/testing/test_fake_http_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace shoal::engine::docker {
namespace {

// All of one request; what is missing when the other side ends is missing.
std::string ReadRequest(int fd) {
  std::string text;
  char block[4096];
  for (;;) {
    const size_t head = text.find("\r\n\r\n");
    if (head != std::string::npos) {
      const size_t at = text.find("Content-Length: ");
      const size_t length = at < head ? std::strtoul(text.c_str() + at + 16, nullptr, 10) : 0;
      if (text.size() >= head + 4 + length) return text;
    }
    const ssize_t got = ::read(fd, block, sizeof block);
    if (got <= 0) return text;
    text.append(block, static_cast<size_t>(got));
  }
}

ReceivedRequest Take(const std::string& text) {
  ReceivedRequest asked;
  const size_t first = text.find(' ');
  const size_t second = text.find(' ', first + 1);
  const size_t head = text.find("\r\n\r\n");
  if (second == std::string::npos || head == std::string::npos) return asked;
  asked.method = text.substr(0, first);
  asked.target = text.substr(first + 1, second - first - 1);
  asked.body = text.substr(head + 4);
  asked.head = text.substr(0, head);
  return asked;
}

}  // namespace

FakeHttpServer::FakeHttpServer(Answer answer, Where where)
    : answer_(std::move(answer)), dir_(TempDir::Create("daemon").value()) {
  where == Where::kLoopback ? ListenAtPort() : ListenAtPath();
  SHOAL_CHECK(::listen(listener_.get(), 16) == 0);
  thread_ = std::thread([this] { Serve(); });
}

void FakeHttpServer::ListenAtPath() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
  listener_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SHOAL_CHECK(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
}

void FakeHttpServer::ListenAtPort() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  listener_.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SHOAL_CHECK(::bind(listener_.get(), generic, size) == 0);
  SHOAL_CHECK(::getsockname(listener_.get(), generic, &size) == 0);
  port_ = ntohs(address.sin_port);
}

FakeHttpServer::~FakeHttpServer() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
}

std::vector<ReceivedRequest> FakeHttpServer::asked() {
  std::lock_guard lock(mu_);
  return asked_;
}

std::string FakeHttpServer::Reply(int status, const std::string& body, const std::string& header) {
  return "HTTP/1.1 " + std::to_string(status) + " Word\r\n" +
         (header.empty() ? "" : header + "\r\n") +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

void FakeHttpServer::Serve() {
  for (;;) {
    const UniqueFd one(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!one.valid()) return;
    const ReceivedRequest asked = Take(ReadRequest(one.get()));
    {
      std::lock_guard lock(mu_);
      asked_.push_back(asked);
    }
    std::string reply = answer_(asked);
    while (!reply.empty()) {
      const ssize_t sent = ::send(one.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;  // it hung up
      reply.erase(0, static_cast<size_t>(sent));
    }
  }
}

}  // namespace shoal::engine::docker
