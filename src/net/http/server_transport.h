// The bytes of one accepted connection, with or without TLS: what ServerConnection and the
// WebSocket are written over. Boost.Asio is behind it.
//
// Everything belongs to the thread of the loop that it was made for. It needs no memory for input
// while a plain connection is silent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/event_loop.h"

namespace shoal::net {

class ServerTls;

class ServerTransport {
 public:
  // Held weakly; calls come from the loop, never from within a method of the transport.
  class User {
   public:
    virtual ~User() = default;
    // What a Read brought; valid during the call.
    virtual void OnBytes(std::string_view bytes) = 0;
    // Instead: the peer has ended its side (`orderly`), or the connection broke.
    virtual void OnEnd(bool orderly) = 0;
    // The kernel has taken some of what was queued, which was not empty; queued_bytes() says what
    // is left.
    virtual void OnSent() = 0;
  };

  virtual ~ServerTransport() = default;

  virtual Loop* loop() const = 0;
  // Shakes hands where there is TLS; Read may be called at once.
  virtual void Start(std::weak_ptr<User> user) = 0;
  // From now on another user is called, also by a Read under way.
  virtual void SetUser(std::weak_ptr<User> user) = 0;
  // Hands are shaken, or need not be.
  virtual bool ready() const = 0;
  // One OnBytes or OnEnd follows; nothing while one is under way.
  virtual void Read() = 0;
  // Queues; what the kernel takes at once is gone when it returns. OnSent comes for the rest.
  virtual void Send(std::string bytes) = 0;
  virtual size_t queued_bytes() const = 0;
  // All that were taken by the kernel.
  virtual uint64_t sent_bytes() const = 0;
  // Ends our side after what is queued; reading goes on.
  virtual void EndWriting() = 0;
  // Closes at once; no calls after it.
  virtual void Close() = 0;
};

// Numeric address and port of the peer.
struct PeerAddress {
  std::string host;
  uint16_t port = 0;
};

// Takes over a connected socket. `tls` null: without. Null if OpenSSL has no memory.
std::shared_ptr<ServerTransport> MakeServerTransport(Loop* loop, int socket, bool v6,
                                                     const ServerTls* tls);

}  // namespace shoal::net
