// A Link as the peer of what otherwise serves a coordinator's connections, for who dials and
// serves: a controller sends files and takes outputs over lines that it has made itself.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "rendezvous/link.h"
#include "rendezvous/peer.h"

namespace shoal::rendezvous {

// `link` is looked at when something is sent, and may be null until then.
class LinkPeer final : public Peer {
 public:
  explicit LinkPeer(const std::unique_ptr<Link>* link) : link_(link) {}

  void Send(std::string_view type, json::object fields) override {
    if (*link_) (*link_)->Send(type, std::move(fields));
  }
  void SendShared(std::shared_ptr<const std::string> bytes, bool /*text*/) override {
    SendBinary(*bytes);
  }
  void SendBinary(std::string frame) override {
    if (*link_) (*link_)->SendBinary(std::move(frame));
  }
  size_t queued_bytes() const override { return *link_ ? (*link_)->queued_bytes() : 0; }
  void OnDrain(std::function<void()> fn) override { on_drain_ = std::move(fn); }
  // The line is kept up; what was wrong is told.
  void Close(std::string_view reason) override { LogWarning("{}", reason); }
  const std::string& address() const override { return address_; }

  void Drained() {
    if (on_drain_) on_drain_();
  }

 private:
  const std::unique_ptr<Link>* const link_;
  std::function<void()> on_drain_;
  const std::string address_ = "the coordinator";
};

}  // namespace shoal::rendezvous
