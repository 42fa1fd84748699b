#include "net/http/server_answers.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "net/http/server_websocket.h"

namespace shoal::net {
namespace {

class ServerExchange final : public HttpExchange {
 public:
  ServerExchange(std::shared_ptr<ServerConnection> connection, HttpServerRequest request,
                 BodyCharge charge, std::shared_ptr<std::atomic<bool>> gone)
      : connection_(std::move(connection)),
        request_(std::move(request)),
        charge_(std::move(charge)),
        gone_(std::move(gone)) {}

  ~ServerExchange() override {
    if (!answered_) Reply(ProblemReply(500, "the request was dropped without an answer"));
  }

  const HttpServerRequest& request() const override { return request_; }
  bool closed() const override { return *gone_; }

  bool Reply(HttpServerReply reply) override {
    if (answered_.exchange(true)) return false;
    if (connection_->port()->IsHere()) {
      connection_->SendReply(std::move(reply));
    } else {
      connection_->port()->Post([connection = connection_, reply = std::move(reply)]() mutable {
        connection->SendReply(std::move(reply));
      });
    }
    return true;
  }

  std::shared_ptr<HttpReplyStream> Stream(int status, HttpHeaders headers) override {
    if (answered_.exchange(true)) return nullptr;
    auto stream = std::make_shared<ServerReplyStream>(connection_);
    const bool posted = connection_->port()->Post(
        [connection = connection_, stream, status, headers = std::move(headers)] {
          connection->StartStream(status, headers, stream);
        });
    if (!posted) stream->EndFromPeer();
    return stream;
  }

  Result<std::shared_ptr<HttpWebSocket>> AcceptWebSocket(std::string_view protocol) override {
    if (!request_.websocket) return FailedPrecondition("the request is none for a WebSocket");
    if (!request_.origin_allowed) {
      return PermissionDenied("pages of " + std::string(request_.Header("origin")) +
                              " may not use this server");
    }
    if (!protocol.empty() && !IsOffered(protocol))
      return InvalidArgument("the peer does not offer the protocol " + std::string(protocol));
    if (answered_.exchange(true)) return FailedPrecondition("the request was answered before");
    auto socket = ServerWebSocket::Make(connection_);
    const bool posted = connection_->port()->Post(
        [connection = connection_, socket, request = request_, name = std::string(protocol)] {
          connection->StartWebSocket(socket, request, name);
        });
    if (!posted) socket->EndFromServer();
    return MakeWebSocketHandle(std::move(socket));
  }

 private:
  bool IsOffered(std::string_view protocol) const {
    for (const auto& [name, value] : request_.headers) {
      if (name != "sec-websocket-protocol") continue;
      std::string_view rest = value;
      while (!rest.empty()) {
        const size_t comma = std::min(rest.find(','), rest.size());
        std::string_view one = rest.substr(0, comma);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
        while (one.starts_with(' ')) one.remove_prefix(1);
        while (one.ends_with(' ')) one.remove_suffix(1);
        if (one == protocol) return true;
      }
    }
    return false;
  }

  const std::shared_ptr<ServerConnection> connection_;
  const HttpServerRequest request_;
  const BodyCharge charge_;
  const std::shared_ptr<std::atomic<bool>> gone_;
  std::atomic<bool> answered_{false};
};

}  // namespace

std::shared_ptr<HttpExchange> MakeServerExchange(std::shared_ptr<ServerConnection> connection,
                                                 HttpServerRequest request, BodyCharge charge,
                                                 std::shared_ptr<std::atomic<bool>> gone) {
  return std::make_shared<ServerExchange>(std::move(connection), std::move(request),
                                          std::move(charge), std::move(gone));
}

ServerReplyStream::~ServerReplyStream() {
  if (finished_ || closed_) return;
  connection_->port()->Post([connection = connection_] { connection->Close(); });
}

bool ServerReplyStream::Write(std::string_view bytes) {
  const MutexLock lock(mu_);
  if (closed_ || finished_) return false;
  if (bytes.empty()) return true;
  if (pending_.size() + given_ + bytes.size() > most_queued_) {
    // Its OnClosed follows from the connection.
    connection_->port()->Post([connection = connection_] { connection->Close(); });
    return false;
  }
  pending_.append(bytes);
  undrained_ = true;
  if (!std::exchange(flush_posted_, true))
    connection_->port()->Post([self = shared_from_this()] { self->Flush(); });
  return true;
}

size_t ServerReplyStream::queued_bytes() const {
  const MutexLock lock(mu_);
  return pending_.size() + given_;
}

void ServerReplyStream::OnDrained(std::function<void()> fn) {
  const MutexLock lock(mu_);
  if (!closed_ && !finished_) on_drained_ = std::move(fn);
}

void ServerReplyStream::OnClosed(std::function<void()> fn) {
  {
    const MutexLock lock(mu_);
    if (finished_) return;
    if (!closed_) {
      on_closed_ = std::move(fn);
      return;
    }
  }
  // Copied: the thread may have ended, and there is none to call it then.
  if (!connection_->port()->Post(fn)) fn();
}

void ServerReplyStream::Finish() {
  std::function<void()> dropped[2];
  const MutexLock lock(mu_);
  if (closed_ || std::exchange(finished_, true)) return;
  dropped[0].swap(on_drained_);
  dropped[1].swap(on_closed_);
  if (!std::exchange(flush_posted_, true))
    connection_->port()->Post([self = shared_from_this()] { self->Flush(); });
}

void ServerReplyStream::Flush() {
  std::string part;
  bool last = false;
  {
    const MutexLock lock(mu_);
    flush_posted_ = false;
    if (closed_) return;
    part.swap(pending_);
    given_ += part.size();
    last = finished_;
  }
  connection_->SendPart(std::move(part), last);
}

void ServerReplyStream::SetQueued(size_t bytes) {
  std::function<void()> fn;
  {
    const MutexLock lock(mu_);
    given_ = bytes;
    if (closed_ || finished_ || bytes > 0 || !pending_.empty()) return;
    if (!std::exchange(undrained_, false)) return;
    fn = on_drained_;
  }
  if (fn) fn();
}

void ServerReplyStream::EndFromPeer() {
  std::function<void()> fn;
  std::function<void()> dropped;
  {
    const MutexLock lock(mu_);
    if (std::exchange(closed_, true)) return;
    fn.swap(on_closed_);
    dropped.swap(on_drained_);
    pending_ = {};
    given_ = 0;
    if (finished_) fn = nullptr;
  }
  if (fn) fn();
}

}  // namespace shoal::net
