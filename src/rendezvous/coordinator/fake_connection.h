// A Connection without a socket that keeps what was sent: for tests of the coordinator's parts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/protocol/connection.h"

namespace shoal::rendezvous {

// What a FakeConnection was told; outlives it.
struct FakeLog {
  std::vector<std::pair<std::string, json::object>> messages;  // type and fields
  int shared = 0;                                              // messages of SendShared
  std::string closed;                                          // the reason; empty: open
};

class FakeConnection final : public Connection {
 public:
  explicit FakeConnection(FakeLog* log) : log_(log) {}
  void Send(std::string_view type, json::object fields) override {
    log_->messages.emplace_back(type, std::move(fields));
  }
  void SendShared(std::shared_ptr<const std::string> /*bytes*/, bool /*text*/) override {
    ++log_->shared;
  }
  void SendBinary(std::string /*frame*/) override {}
  size_t queued_bytes() const override { return 0; }
  void OnDrain(std::function<void()> /*fn*/) override {}
  void Close(std::string_view reason) override { log_->closed = reason; }
  const std::string& address() const override { return address_; }

 private:
  FakeLog* const log_;
  const std::string address_ = "nowhere";
};

}  // namespace shoal::rendezvous
