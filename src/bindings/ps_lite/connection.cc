#include "bindings/ps_lite/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <new>

#include "base/bytes.h"
#include "base/id.h"
#include "base/mutex.h"
#include "ps/transport/socket.h"

namespace shoal::bindings {
namespace {

constexpr size_t kNonceChars = 64;
constexpr size_t kProofChars = 64;
constexpr unsigned kSilence = 30'000;  // milliseconds without an acknowledgement: the host is gone

void Prepare(int fd, Duration receive_timeout) {
  const int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  ps::SetNoDelay(fd);
  const timeval limit{std::chrono::duration_cast<std::chrono::seconds>(receive_timeout).count(), 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const int on = 1, idle = 10, between = 5, probes = 4;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kSilence, sizeof kSilence);
}

std::string ProofOf(std::string_view token, bool dials, const std::string& first,
                    const std::string& second) {
  return HmacSha256Hex(
      token, fmt::format("shoal-lite {} {} {}", dials ? "client" : "server", first, second));
}

}  // namespace

Status ReadMessageHeader(std::string_view bytes, MessageHeader* head) {
  if (bytes.size() != sizeof *head) return OutOfRange("a message's head has 64 bytes");
  std::memcpy(head, bytes.data(), sizeof *head);
  const MessageHeader ours;
  if (head->magic != ours.magic) return InvalidArgument("not a message of a ps-lite node of Shoal");
  if (head->crc != Crc32c(head, sizeof *head - sizeof head->crc))
    return DataLoss("a message's head does not match its checksum");
  if (head->version != ours.version)
    return FailedPrecondition("another version of messages: use the same Shoal everywhere");
  if (head->parts > 3 || head->body > kMaxBody || head->flags > 15)
    return InvalidArgument("a message's head is out of its bounds");
  for (size_t i = 0; i < 3; ++i) {
    const uint64_t size = head->part[i];
    if (size > kMaxParts || (i >= head->parts && size != 0))
      return InvalidArgument("a part of a message is out of its bounds");
  }
  return Status::Ok();
}

MessageHeader MakeHeader(const Message& message) {
  MessageHeader head;
  head.flags = static_cast<uint8_t>((message.request ? 1 : 0) | (message.push ? 2 : 0) |
                                    (message.pull ? 4 : 0) | (message.simple ? 8 : 0));
  head.parts = static_cast<uint8_t>(message.parts.size());
  head.sender = message.sender;
  head.recver = message.recver;
  head.app = message.app;
  head.customer = message.customer;
  head.timestamp = message.timestamp;
  head.head = message.head;
  head.body = static_cast<uint32_t>(message.body.size());
  for (size_t i = 0; i < message.parts.size(); ++i) head.part[i] = message.parts[i].size;
  head.crc = Crc32c(&head, sizeof head - sizeof head.crc);
  return head;
}

ListenerProof::ListenerProof() : nonce_(RandomHex(kNonceChars / 2)) {}

// The dialling side proves first, so that an unauthenticated dialler learns nothing.
Result<std::string> ListenerProof::Check(std::string_view received, std::string_view token) const {
  static_assert(kBytes == kNonceChars + kProofChars);
  const std::string other(received.substr(0, kNonceChars));
  if (!EqualInConstantTime(received.substr(kNonceChars), ProofOf(token, true, other, nonce_)))
    return Unauthenticated("the other side has another token");
  return ProofOf(token, false, other, nonce_);
}

Result<std::unique_ptr<Connection>> Connection::Dial(const std::string& address,
                                                     std::string_view token, Duration timeout) {
  TRY_ASSIGN(UniqueFd fd, ps::ConnectTcp(address, timeout));
  Prepare(fd.get(), kProofTimeout);
  std::unique_ptr<Connection> line(new Connection(std::move(fd), address));
  TRY(line->Prove(token).With(address));
  Prepare(line->fd_.get(), {});
  return line;
}

std::unique_ptr<Connection> Connection::FromProven(UniqueFd fd, std::string name) {
  Prepare(fd.get(), {});
  return std::unique_ptr<Connection>(new Connection(std::move(fd), std::move(name)));
}

Status Connection::Prove(std::string_view token) {
  const std::string own = RandomHex(kNonceChars / 2);
  std::string other(kNonceChars, 0);
  std::string proof(kProofChars, 0);
  TRY(Write(own.data(), own.size()));
  TRY(Read(other.data(), other.size()));
  const std::string mine = ProofOf(token, true, own, other);
  TRY(Write(mine.data(), mine.size()));
  if (!Read(proof.data(), proof.size()).ok()) {
    return Unauthenticated(
        "it refused this node's proof of the job's token: it has another one, or is another job's");
  }
  if (!EqualInConstantTime(proof, ProofOf(token, false, own, other)))
    return Unauthenticated("it has another token");
  return Status::Ok();
}

Status Connection::Write(const void* bytes, size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t sent = ::send(fd_.get(), at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Unavailable(fmt::format("{}: the connection is gone", name_));
    at += sent;
    size -= static_cast<size_t>(sent);
  }
  return Status::Ok();
}

Status Connection::Read(void* to, size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::recv(fd_.get(), at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Unavailable(fmt::format("{}: the connection is gone", name_));
    at += got;
    size -= static_cast<size_t>(got);
  }
  return Status::Ok();
}

Status Connection::Send(const Message& message) {
  if (message.parts.size() > 3) return InvalidArgument("a message has at most 3 parts");
  const MessageHeader head = MakeHeader(message);
  MessageHeader checked;
  TRY(ReadMessageHeader({reinterpret_cast<const char*>(&head), sizeof head}, &checked));
  const MutexLock lock(send_mu_);
  TRY(Write(&head, sizeof head));
  TRY(Write(message.body.data(), message.body.size()));
  for (const auto& part : message.parts) TRY(Write(part.data, part.size));
  return Status::Ok();
}

Status Connection::Receive(Message* message) {
  char bytes[sizeof(MessageHeader)];
  TRY(Read(bytes, sizeof bytes));
  MessageHeader head;
  TRY(ReadMessageHeader({bytes, sizeof bytes}, &head));
  *message = {};
  message->sender = head.sender;
  message->recver = head.recver;
  message->app = head.app;
  message->customer = head.customer;
  message->timestamp = head.timestamp;
  message->head = head.head;
  message->request = (head.flags & 1) != 0;
  message->push = (head.flags & 2) != 0;
  message->pull = (head.flags & 4) != 0;
  message->simple = (head.flags & 8) != 0;
  try {
    message->body.resize(head.body);
    TRY(Read(message->body.data(), message->body.size()));
    for (size_t i = 0; i < head.parts; ++i) {
      const size_t size = head.part[i];
      // On 16 bytes, as every element type needs it.
      std::shared_ptr<char[]> memory(new char[size + 1]);
      TRY(Read(memory.get(), size));
      message->parts.push_back({memory, memory.get(), size});
    }
  } catch (const std::bad_alloc&) {
    return ResourceExhausted(fmt::format("{}: no memory for a message", name_));
  }
  return Status::Ok();
}

void Connection::Shutdown() { ::shutdown(fd_.get(), SHUT_RDWR); }

}  // namespace shoal::bindings
