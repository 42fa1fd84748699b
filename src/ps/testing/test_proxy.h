// A TCP relay between a test's client and its server that breaks connections on demand.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "ps/transport/socket.h"

namespace shoal::ps {

class TestProxy {
 public:
  explicit TestProxy(std::string target) : target_(std::move(target)) {
    listener_ = ListenTcp("127.0.0.1", 0, &port_).value();
    thread_ = std::thread([this] { Run(); });
  }
  ~TestProxy() {
    stop_ = true;
    thread_.join();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // All connections end, wherever their bytes are.
  void Cut() { cut_ = true; }
  int accepted() const { return accepted_; }
  bool cutting() const { return cut_; }
  // From now on nothing gets through, and neither end is told.
  void Stall() { stalled_ = true; }
  void Release() { stalled_ = false; }

 private:
  struct Pair {
    UniqueFd client, server;
  };

  void Run() {
    while (!stop_) {
      if (cut_) {
        pairs_.clear();
        cut_ = false;
      }
      std::vector<pollfd> polls = {{listener_.get(), POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        if (stalled_) break;
        polls.push_back({pair.client.get(), POLLIN, 0});
        polls.push_back({pair.server.get(), POLLIN, 0});
      }
      ::poll(polls.data(), polls.size(), 1);
      if ((polls[0].revents & POLLIN) != 0) Accept();
      size_t at = 1;
      for (auto pair = pairs_.begin(); pair != pairs_.end() && at + 1 < polls.size(); at += 2) {
        const bool ok =
            (polls[at].revents == 0 || Relay(pair->client.get(), pair->server.get())) &&
            (polls[at + 1].revents == 0 || Relay(pair->server.get(), pair->client.get()));
        pair = ok ? std::next(pair) : pairs_.erase(pair);
      }
    }
  }
  void Accept() {
    Pair pair{UniqueFd(::accept(listener_.get(), nullptr, nullptr)), {}};
    auto server = ConnectTcp(target_, std::chrono::seconds(1));
    if (!pair.client.valid() || !server.ok()) return;
    pair.server = std::move(server).value();
    SetNoDelay(pair.client.get());
    ++accepted_;
    pairs_.push_back(std::move(pair));
  }
  bool Relay(int from, int to) {
    char bytes[16384];
    const long got = ReceiveSome(from, bytes, sizeof bytes);
    if (got <= 0) return got < 0 && errno == EAGAIN;
    for (long sent = 0; sent < got && !stop_ && !cut_;) {
      const long n = SendSome(to, bytes + sent, static_cast<size_t>(got - sent));
      if (n < 0 && errno != EAGAIN) return false;
      if (n < 0) {
        pollfd wait{to, POLLOUT, 0};
        ::poll(&wait, 1, 10);
      } else {
        sent += n;
      }
    }
    return !cut_;
  }

  const std::string target_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::list<Pair> pairs_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> cut_{false};
  std::atomic<bool> stalled_{false};
  std::atomic<int> accepted_{0};
  std::thread thread_;
};

}  // namespace shoal::ps
