// The bytes of one connection between a client and a server, in both directions: over a socket,
// over shared memory, or over UCX. Both ends use it (client_connection.cc, tcp_connection.cc), and
// only byte_stream.cc knows the differences.
//
// A connection begins with a SocketStream, over which the handshake runs. Its socket stays beside
// the other two: over shared memory it carries wake-ups, and over both its end is the end of the
// connection.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "ps/transport/shared_ring.h"
#include "ps/transport/ucx_pipe.h"
#include "ps/wire/byte_buffer.h"

namespace shoal::ps {

// Whether a receiver may sleep.
enum class SleepResult : uint8_t {
  kAsleep,
  kDataPending,  // there is something to receive
  kSending,      // what was sent has not gone yet, and no event tells when it has: look again soon
};

// Owned by one connection, and never outlives its socket. No function blocks.
//
// Thread rules: receiving is one thread's at a time, and so is sending; the two may be different
// threads. The owner's locks see to it. Sleep, Awake and Release belong to receiving; AwaitRoom and
// Publish belong to sending.
class ByteStream {
 public:
  // The most that one Receive takes: few enough to stay in the second-level cache until they are
  // applied.
  static constexpr size_t kReceiveBytes = 256u << 10;

  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // --- The kind of stream, constant ---
  // The other end writes into the memory that view() shows, and may do so at any time: what is
  // checked must be copied first (FrameReader does). Rows bear no checksum, since no network could
  // change them. The socket carries wake-ups.
  bool in_shared_memory() const { return in_shared_memory_; }
  // Receive must be called without being asked to, unless Sleep has said kAsleep: the socket
  // reports only wake-ups and the end.
  bool polled() const { return polled_; }
  // A descriptor that wakes a sleeping receiver, instead of the socket; -1: none.
  int event_fd() const { return event_fd_; }

  // --- Receiving ---
  // Looks for more bytes, at most `most` of them (over shared memory, all that are there); 0: takes
  // none, but lets the stream make progress. *got: how many have come. Unavailable: the connection
  // broke. DataLoss: the other end broke the shared memory.
  virtual Status Receive(size_t most, size_t* got) = 0;
  // The other end has closed the connection, and all its bytes have been received. Of sockets only.
  bool ended() const { return ended_; }
  // What has come and was not consumed, in one piece. Valid until the next call.
  virtual std::string_view view() const { return in_.view(); }
  // Announces that a frame of `whole` bytes begins at the front: from now on view() grows until it
  // holds them in one piece. Returns view().
  virtual std::string_view Expect(size_t whole);
  // The frame announced last is longer than shared memory holds in one piece, and is gathered in
  // memory of this process.
  bool gathering() const { return gathering_; }
  // True: so much was consumed since the last Release that another one is worth its cost.
  virtual bool Consume(size_t n);
  // Gives the other end the room of what was consumed.
  virtual void Release() {}
  // From now on the other end, or event_fd, wakes this one. kDataPending: it does not, since there
  // is something to receive. `deaf`: what has come would not be read.
  virtual SleepResult Sleep(bool /*deaf*/) { return SleepResult::kAsleep; }
  // No wake-ups are needed any more.
  virtual void Awake() {}

  // --- Sending ---
  // Takes bytes, in the pieces' order, and shows them to the other end; *taken: how many. An error
  // (Unavailable, DataLoss): the connection is broken, and Receive will say so or see its end.
  virtual Status Send(std::span<const iovec> pieces, size_t* taken) = 0;
  // Whether `size` bytes would be taken now, as far as is known.
  virtual bool HasRoom(size_t /*size*/) { return true; }
  // Memory of the stream where the next `size` bytes may be written, which Commit then takes; null:
  // there is none, so Send must be used.
  virtual char* Place(size_t /*size*/) { return nullptr; }
  virtual void Commit(size_t /*size*/) {}
  // Shows the other end what was committed. DataLoss: it broke the shared memory.
  virtual Status Publish() { return Status::Ok(); }
  // After Send took only a part. True: there is room by now. False: there will be, which the socket
  // tells (EPOLLOUT; over shared memory, a wake-up) or the next Receive brings about.
  virtual bool AwaitRoom() { return false; }

 protected:
  ByteStream(bool in_shared_memory, bool polled, int event_fd)
      : in_shared_memory_(in_shared_memory), polled_(polled), event_fd_(event_fd) {}

  const bool in_shared_memory_;
  const bool polled_;
  const int event_fd_;
  ByteBuffer in_;  // received, unless it lies in shared memory
  bool ended_ = false;
  bool gathering_ = false;
};

// `fd`: a non-blocking socket of the owner's. `received`: what was read from it already.
std::unique_ptr<ByteStream> MakeSocketStream(int fd, ByteBuffer received = {});
// `receives`: the direction in which this end receives. `fd`: the socket beside the rings.
std::unique_ptr<ByteStream> MakeRingStream(int fd, SharedRings rings,
                                           SharedRings::Direction receives);
// `pipe`: connected.
std::unique_ptr<ByteStream> MakeUcxStream(std::unique_ptr<UcxPipe> pipe);

}  // namespace shoal::ps
