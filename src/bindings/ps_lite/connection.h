// One connection between two nodes of a ps-lite job: a proof of the token on both sides, then
// messages (docs/formats/lite-wire.md). Blocking; postoffice.cc gives each a thread that receives.
#pragma once

#include <shoal/ps_lite_api/postoffice.h>

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/status.h"

namespace shoal::bindings {

using ps::v1::lite::Message;

// As it lies in memory and on the wire, little-endian; then body, then the parts.
struct MessageHeader {
  uint32_t magic = 0x4c504853;  // "SHPL"
  uint16_t version = 1;
  uint8_t flags = 0;  // 1 request, 2 push, 4 pull, 8 simple
  uint8_t parts = 0;
  int32_t sender = 0;
  int32_t recver = 0;
  int32_t app = 0;
  int32_t customer = 0;
  int32_t timestamp = 0;
  int32_t head = 0;
  uint32_t body = 0;
  uint64_t part[3] = {};
  uint32_t crc = 0;  // CRC-32C of the bytes before
} __attribute__((packed));
static_assert(sizeof(MessageHeader) == 64);

inline constexpr Duration kProofTimeout = std::chrono::seconds(5);
inline constexpr uint32_t kMaxBody = 64u << 20;
inline constexpr uint64_t kMaxParts = 16ull << 30;  // of one message, together

// Checks magic, version, checksum and lengths; the bytes may be hostile.
Status ReadMessageHeader(std::string_view bytes, MessageHeader* head);
MessageHeader MakeHeader(const Message& message);

// The listening side of the proof that both know the token, fed as bytes come (acceptor.cc). Sends
// its nonce, wants the other's nonce and proof, then sends its own proof.
class ListenerProof {
 public:
  static constexpr size_t kBytes = 128;  // that the other side sends

  ListenerProof();
  const std::string& nonce() const { return nonce_; }
  // The proof to send. `received`: kBytes bytes. Unauthenticated.
  Result<std::string> Check(std::string_view received, std::string_view token) const;

 private:
  const std::string nonce_;
};

class Connection {
 public:
  // Both prove that they know the token. Unavailable, DeadlineExceeded, Unauthenticated.
  static Result<std::unique_ptr<Connection>> Dial(const std::string& address,
                                                  std::string_view token, Duration timeout);
  // Of a connection whose other side has proved it. `name`: of that, for messages.
  static std::unique_ptr<Connection> FromProven(UniqueFd fd, std::string name);

  // Any thread. Blocks while the other side does not read.
  Status Send(const Message& message);
  // One thread. Unavailable at the end.
  Status Receive(Message* message);
  // Wakes the threads that send or receive; both calls fail from now on. Any thread.
  void Shutdown();
  const std::string& name() const { return name_; }

 private:
  Connection(UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}
  Status Write(const void* bytes, size_t size);
  Status Read(void* to, size_t size);
  Status Prove(std::string_view token);

  const UniqueFd fd_;
  const std::string name_;
  Mutex send_mu_;
};

}  // namespace shoal::bindings
