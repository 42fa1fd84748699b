// Makes a CoordinatorConnection usable as a Connection, for code that serves either side: a
// controller uploads files and receives outputs over connections that it has opened itself.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "rendezvous/protocol/connection.h"
#include "rendezvous/protocol/coordinator_connection.h"

namespace shoal::rendezvous {

// `connection` is looked at when something is sent, and may be null until then.
class DialedConnection final : public Connection {
 public:
  explicit DialedConnection(const std::unique_ptr<CoordinatorConnection>* connection)
      : connection_(connection) {}

  void Send(std::string_view type, json::object fields) override {
    if (*connection_) (*connection_)->Send(type, std::move(fields));
  }
  void SendShared(std::shared_ptr<const std::string> bytes, bool /*text*/) override {
    SendBinary(*bytes);
  }
  void SendBinary(std::string frame) override {
    if (*connection_) (*connection_)->SendBinary(std::move(frame));
  }
  size_t queued_bytes() const override { return *connection_ ? (*connection_)->queued_bytes() : 0; }
  void OnDrain(std::function<void()> fn) override { on_drain_ = std::move(fn); }
  // The connection stays; the reason is logged.
  void Close(std::string_view reason) override { LogWarning("{}", reason); }
  const std::string& address() const override { return address_; }

  void Drained() {
    if (on_drain_) on_drain_();
  }

 private:
  const std::unique_ptr<CoordinatorConnection>* const connection_;
  std::function<void()> on_drain_;
  const std::string address_ = "the coordinator";
};

}  // namespace shoal::rendezvous
