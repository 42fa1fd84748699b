// HTTP server for tests, on a unix socket or a loopback port. The test supplies the replies; one
// connection at a time.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"

namespace shoal::engine::docker {

// A request as it was received.
struct ReceivedRequest {
  std::string method;
  std::string target;
  std::string body;
  std::string head;  // request line and headers
};

// Serves from construction to destruction on a thread of its own. Thread-safe.
class FakeHttpServer {
 public:
  // Returns the whole reply, including its head; the connection is then closed.
  using Answer = std::function<std::string(const ReceivedRequest&)>;

  enum class Where { kUnixSocket, kLoopback };
  explicit FakeHttpServer(Answer answer, Where where = Where::kUnixSocket);
  ~FakeHttpServer();

  std::string path() const { return (dir_.path() / "socket").string(); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<ReceivedRequest> asked();
  // A reply with this status and body; `header`: an additional header line.
  static std::string Reply(int status, const std::string& body, const std::string& header = "");

 private:
  void ListenAtPath();
  void ListenAtPort();
  void Serve();

  const Answer answer_;
  TempDir dir_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::mutex mu_;
  std::vector<ReceivedRequest> asked_;  // guarded by mu_
  std::thread thread_;
};

}  // namespace shoal::engine::docker
