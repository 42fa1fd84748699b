// WebSocket frames (RFC 6455) of a client, as bytes: for connections that go through the API server
// and are waited for with poll. Used by kube_exec.cc; fuzzed by tests/fuzz/kubernetes_fuzz.cc.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace shoal::engine::kubernetes {

// A whole binary message, masked as a client's must be.
std::string EncodeWebSocketMessage(std::string_view bytes);
std::string EncodeWebSocketPong(std::string_view bytes);
std::string EncodeWebSocketClose();
// Of the header Sec-WebSocket-Key.
std::string NewWebSocketKey();

// Puts what a server says together. Plain value.
class WebSocketReader {
 public:
  struct Message {
    enum class Kind { kData, kPing, kClose };
    Kind kind = Kind::kData;
    std::string bytes;
  };
  // DataLoss for what is no frame, is masked, or is longer than 16 MiB in all.
  Status Feed(std::string_view bytes, std::vector<Message>* messages);

 private:
  std::string rest_;
  std::string message_;  // fragments so far
};

}  // namespace shoal::engine::kubernetes
