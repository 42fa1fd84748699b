// A server of the tests: answers by path, with a clock that stands still.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/http/http_server.h"
#include "net/http/test_raw_peer.h"

namespace shoal::net {

inline bool Eventually(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

class TestHttpServer {
 public:
  explicit TestHttpServer(HttpServerOptions options = {}) {
    options.clock = &clock;
    if (!options.handler) {
      options.handler = [this](const std::shared_ptr<HttpExchange>& exchange) { Take(exchange); };
    }
    auto made = HttpServer::Start(std::move(options));
    EXPECT_TRUE(made.ok()) << made.status().message();
    if (made.ok()) server = std::move(*made);
  }
  ~TestHttpServer() { server.reset(); }

  // "/hold": kept until Held; others: "METHOD TARGET BODY".
  void Take(const std::shared_ptr<HttpExchange>& exchange) {
    const HttpServerRequest& request = exchange->request();
    if (request.target.starts_with("/hold")) {
      const std::lock_guard lock(mu);
      held.push_back(exchange);
      came.notify_all();
      return;
    }
    HttpServerReply reply;
    reply.headers.emplace_back("Content-Type", "text/plain");
    reply.body = request.method + " " + request.target + " " + request.body;
    exchange->Reply(std::move(reply));
  }
  // The next exchange that is held; null if none comes.
  std::shared_ptr<HttpExchange> Held() {
    std::unique_lock lock(mu);
    if (!came.wait_for(lock, RawPeer::kLimit, [this] { return !held.empty(); })) return nullptr;
    auto one = held.front();
    held.erase(held.begin());
    return one;
  }
  // The reply to one request, by a peer that closes its side after it.
  std::string Ask(std::string_view bytes) {
    RawPeer peer(server->port());
    peer.Send(bytes);
    peer.EndWriting();
    return peer.ReadToEnd();
  }

  FakeClock clock;
  std::unique_ptr<HttpServer> server;
  std::mutex mu;
  std::condition_variable came;
  std::vector<std::shared_ptr<HttpExchange>> held;
};

}  // namespace shoal::net
