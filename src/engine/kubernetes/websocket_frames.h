// Client-side WebSocket frames (RFC 6455) without I/O, for connections through the API server that
// are polled. Used by kube_exec.cc; fuzzed by tests/fuzz/kubernetes_fuzz.cc.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace shoal::engine::kubernetes {

// A complete binary message, masked as RFC 6455 requires of clients.
std::string EncodeWebSocketMessage(std::string_view bytes);
std::string EncodeWebSocketPong(std::string_view bytes);
std::string EncodeWebSocketClose();
// A random value for the header Sec-WebSocket-Key.
std::string NewWebSocketKey();

// Assembles messages from a server's bytes. Plain value.
class WebSocketReader {
 public:
  struct Message {
    enum class Kind { kData, kPing, kClose };
    Kind kind = Kind::kData;
    std::string bytes;
  };
  // DataLoss for an invalid or masked frame, or a message over 16 MiB.
  Status Feed(std::string_view bytes, std::vector<Message>* messages);

 private:
  std::string rest_;
  std::string message_;  // fragments so far
};

}  // namespace shoal::engine::kubernetes
