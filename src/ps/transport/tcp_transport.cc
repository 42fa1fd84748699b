// The client's side of a connection's beginning: dials, proves the token, and makes of it a
// ClientConnection, over UCX if it is told to, or over shared memory if the server is on this host
// and hands some over.
#include <fmt/format.h>
#include <poll.h>

#include <cerrno>
#include <optional>

#include "base/bytes.h"
#include "base/mutex.h"
#include "ps/transport/client_connection.h"
#include "ps/transport/local_socket.h"
#include "ps/transport/socket.h"
#include "ps/transport/transport.h"
#include "ps/transport/ucx_pipe.h"
#include "ps/wire/byte_buffer.h"
#include "ps/wire/handshake.h"

namespace shoal::ps {
namespace {

// A connection before it is a stream.
struct Beginning {
  UniqueFd fd;
  bool local = false;
  ByteBuffer in;
  UniqueFd memory;  // came with the last frame
};

// One frame of the handshake, blocking until the deadline.
Result<std::string> AwaitFrame(Beginning* from, FrameType type, TimePoint deadline) {
  const int fd = from->fd.get();
  ByteBuffer* const in = &from->in;
  FrameHeader head;
  for (;;) {
    if (in->size() >= sizeof head) {
      TRY(ReadHeader(in->view().substr(0, sizeof head), kMaxHandshakePayload, &head));
      if (in->size() >= sizeof head + head.payload) break;
    }
    TRY(WaitSocket(fd, POLLIN, deadline));
    char* to = in->Reserve(kMaxHandshakePayload);
    const long got = from->local ? ReceiveWithDescriptor(fd, to, in->room(), &from->memory)
                                 : ReceiveSome(fd, to, in->room());
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) continue;
    if (got < 0 && errno == EMFILE) {
      return Unavailable("no descriptor is free for the memory shared with it: raise `ulimit -n`");
    }
    if (got <= 0) return Unavailable("the server closed the connection during the handshake");
    in->Commit(static_cast<size_t>(got));
  }
  const std::string payload(in->view().substr(sizeof head, head.payload));
  TRY(CheckPayload(head, payload));
  in->Consume(sizeof head + head.payload);
  const std::string body = payload.substr(0, head.body);
  if (head.type == FrameType::kError) return DecodeError(body);
  if (head.type != type) return DataLoss("the server sent an unexpected frame");
  return body;
}

class TcpTransport final : public Transport {
 public:
  TcpTransport(std::string token, bool shared_memory, bool ucx)
      : token_(std::move(token)), shared_memory_(shared_memory && !ucx), ucx_(ucx) {}
  ~TcpTransport() override {
    if (loop_ != nullptr) loop_->Stop();
  }

  Result<OpenedConnection> Dial(const std::string& address, const Hello& hello,
                                Duration timeout) override {
    auto dialled = DialOnce(address, hello, timeout);
    if (!dialled.ok()) return dialled.status().With(address);
    return dialled;
  }

 private:
  Result<OpenedConnection> DialOnce(const std::string& address, const Hello& hello,
                                    Duration timeout) {
    const TimePoint deadline = RealClock::Get()->Now() + timeout;
    TRY(EnsureLoop());
    Beginning to;
    if (shared_memory_) {
      auto local = ConnectLocal(address);
      to.local = local.ok();
      if (local.ok()) to.fd = std::move(local).value();
    }
    if (!to.local) {
      TRY_ASSIGN(to.fd, ConnectTcp(address, timeout));
    }
    Hello said = hello;
    std::unique_ptr<UcxPipe> pipe;
    if (ucx_) {
      TRY_ASSIGN(pipe, UcxPipe::Make());
      said.ucx = pipe->address();
    }
    Nonces nonces;
    nonces.client = NewNonce();
    TRY_ASSIGN(const auto challenge, AwaitFrame(&to, FrameType::kChallenge, deadline));
    TRY(DecodeChallenge(challenge, &nonces.server));
    if (pipe != nullptr) TRY(pipe->Expect(UcxTag(token_, nonces)));
    FrameHeader head;
    head.type = FrameType::kProof;
    std::string proof;
    AppendControlFrame(head, EncodeProof(token_, nonces, said), &proof);
    if (SendSome(to.fd.get(), proof.data(), proof.size()) != static_cast<long>(proof.size())) {
      return Unavailable("the server does not read the handshake");
    }
    TRY_ASSIGN(const auto answer, AwaitFrame(&to, FrameType::kWelcome, deadline));
    OpenedConnection dialled;
    TRY(DecodeWelcome(answer, token_, nonces, &dialled.welcome));
    if (pipe != nullptr) TRY(pipe->Connect(dialled.welcome.ucx));
    std::optional<SharedRings> memory;
    if (to.memory.valid()) {
      TRY_ASSIGN(SharedRings opened, SharedRings::Open(std::move(to.memory)));
      memory.emplace(std::move(opened));
    }
    dialled.connection =
        std::make_unique<ClientConnectionHandle>(std::make_shared<ClientConnection>(
            std::move(to.fd), std::move(to.in), std::move(memory), std::move(pipe), loop()));
    return dialled;
  }
  std::shared_ptr<ClientLoop> loop() {
    const MutexLock lock(mu_);
    return loop_;
  }
  Status EnsureLoop() {
    const MutexLock lock(mu_);
    if (loop_ != nullptr) return Status::Ok();
    TRY_ASSIGN(loop_, ClientLoop::Start());
    return Status::Ok();
  }

  const std::string token_;
  const bool shared_memory_;
  const bool ucx_;
  Mutex mu_;
  std::shared_ptr<ClientLoop> loop_ GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<Transport> MakeTcpTransport(std::string token, bool shared_memory, bool ucx) {
  return std::make_unique<TcpTransport>(std::move(token), shared_memory, ucx);
}

}  // namespace shoal::ps
