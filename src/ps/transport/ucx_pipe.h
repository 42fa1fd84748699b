// One connection's bytes over UCX: a stream in each direction, like a socket's, that RDMA hardware
// carries where there is some. The authenticated TCP connection beside it (tcp_transport.cc,
// tcp_connection.cc) exchanges the two addresses, and its end is the end of both.
//
// Bytes go in messages of at most kUcxMessage, each into memory that its receiver has laid out for
// it: kUcxMessages of them, and only so many are sent until the receiver says that it has read
// some. So no message is unexpected, memory is bounded, and an unexpected one breaks the
// pipe. Messages bear a tag that both ends make of the job's token and this connection's nonces.
//
// Used by client_connection.cc and tcp_connection.cc (docs/formats/ps-wire.md, "Over UCX";
// docs/adr/0092).
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ps/wire/handshake.h"

namespace shoal::ps {

inline constexpr size_t kUcxMessage = 64u << 10;
inline constexpr size_t kUcxMessages = 16;

// Whether this program can use UCX; FailedPrecondition says what is missing.
Status CheckUcxAvailable();

// The tag of a connection's messages, for Expect. Secret, as the token is.
uint64_t UcxTag(std::string_view token, const Nonces& nonces);

// The result of Sleep.
enum class UcxSleep : uint8_t {
  kAsleep,
  kDataPending,  // there is something to receive
  kSending,  // what was sent has not gone yet, and its completion raises no event: look again soon
};

// Thread-safe. No function blocks.
class UcxPipe {
 public:
  // FailedPrecondition without UCX (CheckUcxAvailable), or without a way of UCX's on this machine.
  static Result<std::unique_ptr<UcxPipe>> Make();
  // Unsent bytes are lost. The other end must learn of the end by other means.
  ~UcxPipe();
  UcxPipe(const UcxPipe&) = delete;
  UcxPipe& operator=(const UcxPipe&) = delete;

  // For the other end; at most kMaxUcxAddress bytes.
  const std::string& address() const { return address_; }
  // Lays memory out for messages; before the other end may send.
  Status Expect(uint64_t tag);
  // To the other end's address, after Expect. InvalidArgument for what is no address of the same
  // version of UCX. UCX itself checks nothing, so `peer` must come from an authenticated
  // connection.
  Status Connect(std::string_view peer);

  // Takes bytes, at most as many as there is room for, in the pieces' order. Returns how many. A
  // broken pipe takes all, and drops them.
  size_t Send(std::span<const iovec> pieces);
  // Makes progress, then copies received bytes; 0: none. A caller that got no room from Send may
  // have some now.
  size_t Receive(char* to, size_t room);
  // Not OK once the pipe is broken.
  Status status() const;

  // Becomes readable when something comes, after Sleep has said kAsleep.
  int event_fd() const { return event_fd_; }
  // `deaf`: what has come would not be read.
  UcxSleep Sleep(bool deaf);

 private:
  struct Ends;
  explicit UcxPipe(std::unique_ptr<Ends> ends);
  const std::unique_ptr<Ends> ends_;
  std::string address_;
  int event_fd_ = -1;
};

}  // namespace shoal::ps
