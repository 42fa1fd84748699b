// Two rings of bytes in memory that a client and a server of one host share: one a direction, each
// with one writer and one reader (docs/formats/ps-wire.md, "On one host").
//
// Made by the server (tcp_connection.cc), handed over a unix socket and opened by the client
// (client_connection.cc). Each ring lies twice in a row in the address space, so that whatever is
// in it is in one piece. The other side is hostile: it may write anything anywhere at any time, so
// its indices are checked at every look, and nothing is believed that lies in the ring without
// having been copied out before it is checked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace shoal::ps {

// Of one ring, a power of two. More than the two processors' second-level caches together, so that
// what is read was written back to the third level by then: where the lines are still in the other
// processor's cache they come at half the rate and less (docs/adr/0043-rings-larger-than-l2.md).
inline constexpr size_t kRingBytes = 2u << 20;
inline constexpr size_t kMinRingBytes = 256u << 10;
inline constexpr size_t kMaxRingBytes = 64u << 20;
// The largest frame that goes into a ring in one piece; larger ones go through it in pieces.
inline constexpr size_t kRingFrame = kMinRingBytes / 2;

// As it lies in the shared memory. Indices count bytes since the beginning.
struct RingControl {
  alignas(128) std::atomic<uint64_t> head;           // written by the writer
  alignas(128) std::atomic<uint64_t> tail;           // written by the reader
  alignas(128) std::atomic<uint32_t> reader_sleeps;  // the writer must wake it after a write
  alignas(128) std::atomic<uint32_t> writer_waits;   // the reader must wake it when half is free
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

bool IsRingSize(size_t bytes);

class SharedRings {
 public:
  enum Direction { kToServer = 0, kToClient = 1 };

  // New memory for two rings of `ring_bytes` each (a power of two within the bounds above), sealed
  // against changes of its size. ResourceExhausted if there is none.
  static Result<SharedRings> Create(size_t ring_bytes = kRingBytes);
  // Maps what the other side made. InvalidArgument unless it is sealed and of a size that Create
  // makes: otherwise a shrunk file could end this process.
  static Result<SharedRings> Open(UniqueFd memory);

  SharedRings(SharedRings&& other) noexcept;
  SharedRings& operator=(SharedRings&&) = delete;
  ~SharedRings();

  int fd() const { return memory_.get(); }
  size_t ring_bytes() const { return ring_bytes_; }
  RingControl* control(Direction direction) const;
  char* bytes(Direction direction) const;

 private:
  SharedRings() = default;
  Status Map();
  UniqueFd memory_;
  size_t ring_bytes_ = 0;
  char* base_ = nullptr;  // control page, ring, ring, other ring, other ring
};

// The writing end; one thread at a time.
class RingWriter {
 public:
  RingWriter(const SharedRings& rings, SharedRings::Direction direction)
      : control_(rings.control(direction)),
        bytes_(rings.bytes(direction)),
        size_(rings.ring_bytes()) {}

  // Free bytes; looks at the reader's index only if less than `wanted` was known to be free.
  size_t Room(size_t wanted);
  // Where the next byte goes; Room bytes lie there in one piece.
  char* At() const { return bytes_ + (head_ & (size_ - 1)); }
  void Advance(size_t n) { head_ += n; }
  // Shows the reader what was written. True: the reader sleeps and must be woken.
  bool Publish();
  bool unpublished() const { return head_ != published_; }
  // Whether half of the ring is free; if not, the reader wakes the writer once it is.
  bool AwaitRoom();
  // The reader's index made no sense.
  bool broken() const { return broken_; }

 private:
  RingControl* const control_;
  char* const bytes_;
  const size_t size_;
  uint64_t head_ = 0;
  uint64_t published_ = 0;
  uint64_t tail_ = 0;  // last seen, always plausible
  bool broken_ = false;
};

// The reading end; one thread at a time.
class RingReader {
 public:
  RingReader(const SharedRings& rings, SharedRings::Direction direction)
      : control_(rings.control(direction)),
        bytes_(rings.bytes(direction)),
        size_(rings.ring_bytes()) {}

  // Looks for more; true if something has come since the last look, or the ring is broken.
  bool CheckForData();
  // The bytes that the last CheckForData found and that were not consumed. The writer may still
  // change them.
  std::string_view view() const { return {bytes_ + (tail_ & (size_ - 1)), head_ - tail_}; }
  void Consume(size_t n) { tail_ += n; }
  // Gives what was consumed back to the writer. True: the writer waits for room and must be woken.
  bool Release();
  // From now on the writer wakes the reader. False: something came meanwhile, do not sleep.
  bool Sleep();
  void ClearSleeping() { control_->reader_sleeps.store(0, std::memory_order_relaxed); }
  bool broken() const { return broken_; }

 private:
  RingControl* const control_;
  const char* const bytes_;
  const size_t size_;
  uint64_t tail_ = 0;
  uint64_t released_ = 0;
  uint64_t head_ = 0;  // last seen, always plausible
  bool broken_ = false;
};

// The pause in each turn of a loop that waits without sleeping.
inline void SpinPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace shoal::ps
