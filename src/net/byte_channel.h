// A connection's bytes, with or without TLS in between, for code that waits with poll(2): the HTTP
// clients, and relays of bytes over a connection that was HTTP before.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace shoal::net {

// Not thread-safe, but for Cancel. Never blocks.
class ByteChannel {
 public:
  // The result of a read or write.
  struct Step {
    size_t bytes = 0;    // that went
    bool end = false;    // of a read: nothing comes any more
    short wait_for = 0;  // not 0: nothing went; poll fd() for this first
    Status error = {};
  };
  virtual ~ByteChannel() = default;
  virtual int fd() const = 0;
  virtual Step Read(char* to, size_t size) = 0;
  virtual Step Write(std::string_view bytes) = 0;
  // Whether Read has bytes that poll does not know of.
  virtual bool HasPending() const { return false; }
  // Nothing more is written; the other side learns it where the protocol can say so.
  virtual void EndWriting() = 0;
  // From any thread: both directions end, and threads that poll fd() wake.
  virtual void Cancel() = 0;
};

using Deadline = std::chrono::steady_clock::time_point;

// Over a connected socket that does not block.
std::unique_ptr<ByteChannel> PlainByteChannel(UniqueFd socket);

// OK when `fd` is ready for `events`. Cancelled if a WaitInterrupt of this thread says so.
Status AwaitFd(int fd, short events, Deadline deadline);
// While it exists, what this thread waits for in AwaitFd, and so in every call of this room that
// has a deadline, ends with Cancelled once `fd` is readable. The latest counts.
class WaitInterrupt {
 public:
  explicit WaitInterrupt(int fd);
  ~WaitInterrupt();
  WaitInterrupt(const WaitInterrupt&) = delete;
  WaitInterrupt& operator=(const WaitInterrupt&) = delete;

 private:
  const int before_;
};
// All of it, or the error; OK too if the other side has closed: its answer says why.
Status SendAll(ByteChannel* channel, std::string_view bytes, Deadline deadline);
// As ByteChannel::Read, but waits; 0 at the end.
Result<size_t> ReadSome(ByteChannel* channel, char* to, size_t size, Deadline deadline);

// Bytes both ways between a channel and a socket, until one side has ended or broken. Blocks. What
// the other side said first is in `early`.
void RelayBytes(ByteChannel* channel, std::string_view early, int socket);

}  // namespace shoal::net
