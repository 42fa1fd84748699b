// What the parts of an HttpServer share: options, counters, certificates, and the way to its I/O
// threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "net/event_loop.h"
#include "net/http/http_server.h"
#include "net/http/server_tls.h"

namespace shoal::net {

// The way to one I/O thread, which may have ended. Thread-safe.
class LoopPort {
 public:
  explicit LoopPort(Loop* loop) : loop_(loop) {}
  // Runs `fn` on the thread; false, and `fn` is dropped, when it has ended.
  bool Post(std::function<void()> fn);
  // Whether this is that thread.
  bool IsHere() const { return thread_ == std::this_thread::get_id(); }
  // By the thread, first.
  void Begin() { thread_ = std::this_thread::get_id(); }
  // Nothing is posted after it.
  void End();

 private:
  Mutex mu_;
  Loop* loop_;
  std::atomic<std::thread::id> thread_;
};

// How many connections each peer has. Thread-safe.
class PeerCounts {
 public:
  // False, and not counted, if it has `most`.
  bool Add(const std::string& key, size_t most);
  void Remove(const std::string& key);

 private:
  Mutex mu_;
  std::map<std::string, size_t> counts_;
};

// The address, or the /64 of an IPv6 address; empty for the loopback, which is not limited.
std::string PeerKey(const std::string& numeric_address);

struct ServerCore {
  HttpServerOptions options;
  std::unique_ptr<ServerTls> tls;  // null: none
  PeerCounts peers;
  std::atomic<bool> stopping{false};
  std::atomic<size_t> connections{0};
  std::atomic<size_t> refusing{0};    // of them over a limit, to be told so
  std::atomic<size_t> body_bytes{0};  // of requests held
  std::atomic<uint64_t> accepted{0};
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> refused_connections{0};
  std::atomic<uint64_t> bad_requests{0};
  std::atomic<uint64_t> accept_errors{0};

  Mutex empty_mu;
  CondVar empty;  // no connection is open

  TimePoint Now() const { return options.clock->Now(); }
};

// Bytes of a request's body in ServerCore::body_bytes.
class BodyCharge {
 public:
  explicit BodyCharge(std::shared_ptr<ServerCore> core) : core_(std::move(core)) {}
  BodyCharge(BodyCharge&& other) noexcept
      : core_(std::move(other.core_)), bytes_(std::exchange(other.bytes_, 0)) {}
  BodyCharge& operator=(BodyCharge&&) = delete;
  ~BodyCharge() {
    if (bytes_ > 0) core_->body_bytes -= bytes_;
  }
  // False if all bodies together are over the limit.
  bool SetTo(size_t bytes);

 private:
  std::shared_ptr<ServerCore> core_;
  size_t bytes_ = 0;
};

}  // namespace shoal::net
