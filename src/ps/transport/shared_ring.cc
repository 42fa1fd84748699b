#include "ps/transport/shared_ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <utility>

namespace shoal::ps {
namespace {

constexpr size_t kControlBytes = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
static_assert(2 * sizeof(RingControl) <= kControlBytes);

size_t FileBytes(size_t ring_bytes) { return kControlBytes + 2 * ring_bytes; }
size_t MappedBytes(size_t ring_bytes) { return kControlBytes + 4 * ring_bytes; }

}  // namespace

bool IsRingSize(size_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kMinRingBytes && bytes <= kMaxRingBytes;
}

Result<SharedRings> SharedRings::Create(size_t ring_bytes) {
  SHOAL_CHECK(IsRingSize(ring_bytes));
  SharedRings rings;
  rings.ring_bytes_ = ring_bytes;
  rings.memory_.Reset(::memfd_create("shoal-ps", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!rings.memory_.valid()) return ErrnoStatus(errno, "memfd_create");
  // Allocated now: later a lack of memory would be a signal, not an error.
  const int error = ::posix_fallocate(rings.fd(), 0, static_cast<off_t>(FileBytes(ring_bytes)));
  if (error != 0) return ErrnoStatus(error, "memory for a connection");
  if (::fcntl(rings.fd(), F_ADD_SEALS, kSeals) != 0) return ErrnoStatus(errno, "F_ADD_SEALS");
  TRY(rings.Map());
  return rings;
}

Result<SharedRings> SharedRings::Open(UniqueFd memory) {
  struct stat status {};
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  if (!sealed || ::fstat(memory.get(), &status) != 0) {
    return InvalidArgument("the server's shared memory is not sealed");
  }
  const auto size = static_cast<size_t>(std::max<off_t>(status.st_size, 0));
  const size_t ring_bytes = size < kControlBytes ? 0 : (size - kControlBytes) / 2;
  if (!IsRingSize(ring_bytes) || FileBytes(ring_bytes) != size) {
    return InvalidArgument(
        fmt::format("the server's shared memory has {} bytes, expected {} and two rings of a power "
                    "of two from {} to {}",
                    size, kControlBytes, kMinRingBytes, kMaxRingBytes));
  }
  SharedRings rings;
  rings.ring_bytes_ = ring_bytes;
  rings.memory_ = std::move(memory);
  TRY(rings.Map());
  return rings;
}

Status SharedRings::Map() {
  void* const all = ::mmap(nullptr, MappedBytes(ring_bytes_), PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return ErrnoStatus(errno, "mmap");
  base_ = static_cast<char*>(all);
  const auto place = [&](size_t at, size_t offset, size_t size) {
    return ::mmap(base_ + at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                  fd(), static_cast<off_t>(offset)) != MAP_FAILED;
  };
  bool placed = place(0, 0, kControlBytes);
  for (size_t ring = 0; ring < 2; ++ring) {
    for (size_t copy = 0; copy < 2; ++copy) {
      placed = placed && place(kControlBytes + (2 * ring + copy) * ring_bytes_,
                               kControlBytes + ring * ring_bytes_, ring_bytes_);
    }
  }
  return placed ? Status::Ok() : ErrnoStatus(errno, "mmap of shared memory");
}

SharedRings::SharedRings(SharedRings&& other) noexcept
    : memory_(std::move(other.memory_)),
      ring_bytes_(other.ring_bytes_),
      base_(std::exchange(other.base_, nullptr)) {}

SharedRings::~SharedRings() {
  if (base_ != nullptr) ::munmap(base_, MappedBytes(ring_bytes_));
}

RingControl* SharedRings::control(Direction direction) const {
  // The file begins with zeros, which is what these atomics begin with.
  return std::launder(reinterpret_cast<RingControl*>(base_)) + direction;
}

char* SharedRings::bytes(Direction direction) const {
  return base_ + kControlBytes + (direction == kToServer ? 0 : 2) * ring_bytes_;
}

size_t RingWriter::Room(size_t wanted) {
  size_t room = size_ - (head_ - tail_);
  if (room >= wanted || broken_) return broken_ ? 0 : room;
  const uint64_t tail = control_->tail.load(std::memory_order_acquire);
  // It may only grow, up to what was shown.
  if (tail - tail_ > published_ - tail_) {
    broken_ = true;
    return 0;
  }
  tail_ = tail;
  return size_ - (head_ - tail_);
}

bool RingWriter::Publish() {
  if (head_ == published_) return false;
  published_ = head_;
  control_->head.store(head_, std::memory_order_seq_cst);
  if (control_->reader_sleeps.load(std::memory_order_seq_cst) == 0) return false;
  control_->reader_sleeps.store(0, std::memory_order_relaxed);
  return true;
}

bool RingWriter::AwaitRoom() {
  control_->writer_waits.store(1, std::memory_order_seq_cst);
  // Sequentially consistent, so that either this sees the reader's step or the reader the wish.
  const uint64_t tail = control_->tail.load(std::memory_order_seq_cst);
  if (head_ - tail > size_ / 2) return false;
  control_->writer_waits.store(0, std::memory_order_relaxed);
  return true;
}

bool RingReader::CheckForData() {
  const uint64_t head = control_->head.load(std::memory_order_acquire);
  if (head == head_) return false;
  // It may only grow, to a ring's length from what was given back.
  if (broken_ || head - head_ > released_ + size_ - head_) {
    broken_ = true;
    return true;
  }
  head_ = head;
  return true;
}

bool RingReader::Release() {
  if (released_ == tail_) return false;
  released_ = tail_;
  control_->tail.store(tail_, std::memory_order_seq_cst);
  if (control_->writer_waits.load(std::memory_order_seq_cst) == 0) return false;
  if (head_ - tail_ > size_ / 2) return false;
  control_->writer_waits.store(0, std::memory_order_relaxed);
  return true;
}

bool RingReader::Sleep() {
  const uint64_t before = head_;
  control_->reader_sleeps.store(1, std::memory_order_seq_cst);
  if (control_->head.load(std::memory_order_seq_cst) == before) return true;
  ClearSleeping();
  return false;
}

}  // namespace shoal::ps
