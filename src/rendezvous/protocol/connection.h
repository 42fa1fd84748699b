// A connection on the accepting side: sends a challenge, checks the proof within 5 s, and only then
// reports the connection. Used by coordinator.cc and remote_shell_server.cc. Belongs to the loop's
// thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "net/event_loop.h"
#include "net/websocket.h"

namespace shoal::rendezvous {

class Connection {
 public:
  struct Callbacks {
    // The other side has proved the token. `hello` is its first message.
    std::function<void(const json::object& hello)> on_proved;
    // Only after on_proved.
    std::function<void(const std::string& type, const json::object& message)> on_message;
    std::function<void(std::string_view frame)> on_binary;
    // Once, in every case. Destroys the Connection.
    std::function<void()> on_gone;
  };
  static std::unique_ptr<Connection> Greet(net::Loop* loop, std::unique_ptr<net::WebSocket> socket,
                                           const std::string& token, Callbacks callbacks);
  virtual ~Connection() = default;

  virtual void Send(std::string_view type, json::object fields) = 0;
  // A complete message that many receivers share.
  virtual void SendShared(std::shared_ptr<const std::string> bytes, bool text) = 0;
  virtual void SendBinary(std::string frame) = 0;
  virtual size_t queued_bytes() const = 0;
  virtual void OnDrain(std::function<void()> fn) = 0;
  virtual void Close(std::string_view reason) = 0;
  virtual const std::string& address() const = 0;
};

}  // namespace shoal::rendezvous
