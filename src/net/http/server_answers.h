// The exchange and the streamed reply that handlers get, which may be used from any thread, over a
// connection that belongs to its I/O thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "net/http/server_connection.h"
#include "net/http/server_exchange.h"

namespace shoal::net {

// `gone` is set when the peer has ended.
std::shared_ptr<HttpExchange> MakeServerExchange(std::shared_ptr<ServerConnection> connection,
                                                 HttpServerRequest request, BodyCharge charge,
                                                 std::shared_ptr<std::atomic<bool>> gone);

class ServerReplyStream final : public HttpReplyStream,
                                public std::enable_shared_from_this<ServerReplyStream> {
 public:
  explicit ServerReplyStream(std::shared_ptr<ServerConnection> connection)
      : connection_(std::move(connection)),
        most_queued_(connection_->core()->options.limits.queued_bytes) {}
  ~ServerReplyStream() override;

  bool Write(std::string_view bytes) override;
  size_t queued_bytes() const override;
  void OnDrained(std::function<void()> fn) override;
  void OnClosed(std::function<void()> fn) override;
  void Finish() override;

  // On the I/O thread: the connection is closed.
  void EndFromPeer();
  // On the I/O thread: what the connection has queued.
  void SetQueued(size_t bytes);

 private:
  void Flush();

  const std::shared_ptr<ServerConnection> connection_;
  const size_t most_queued_;
  mutable Mutex mu_;
  std::string pending_;     // not given to the connection yet
  size_t given_ = 0;        // queued by the connection
  bool undrained_ = false;  // something was queued since the last OnDrained
  bool flush_posted_ = false;
  bool finished_ = false;
  bool closed_ = false;
  std::function<void()> on_drained_;
  std::function<void()> on_closed_;
};

}  // namespace shoal::net
