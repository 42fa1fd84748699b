// A queue of bytes in one piece of memory, for sockets: filled at the end, emptied at the front,
// never cleared to zero, grown only when what is in it does not fit.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace shoal::ps {

class ByteBuffer {
 public:
  ByteBuffer() = default;
  ByteBuffer(ByteBuffer&& other) noexcept { Swap(other); }
  ByteBuffer& operator=(ByteBuffer&&) = delete;

  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  char* data() { return bytes_.get() + begin_; }
  std::string_view view() const { return {bytes_.get() + begin_, size()}; }
  // Free bytes behind the end.
  size_t room() const { return capacity_ - end_; }
  size_t capacity() const { return capacity_; }

  // Makes room for `n` more; moves what is there to the front, or to a bigger piece. The front
  // lies on 16 bytes, and what was a multiple of 8 from it stays so.
  char* Reserve(size_t n) {
    if (room() < n) MakeRoom(n);
    return bytes_.get() + end_;
  }
  void Commit(size_t n) { end_ += n; }
  void Append(const void* from, size_t n) {
    if (n == 0) return;
    std::memcpy(Reserve(n), from, n);
    end_ += n;
  }
  void Consume(size_t n) {
    begin_ += n;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  // Takes back the last `n` bytes.
  void Retract(size_t n) { end_ -= n; }
  // Gives memory back that one huge frame had needed.
  void ShrinkTo(size_t capacity) {
    if (!empty() || capacity_ <= capacity) return;
    bytes_.reset();
    capacity_ = 0;
  }
  void Swap(ByteBuffer& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(capacity_, other.capacity_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
  }

 private:
  void MakeRoom(size_t n) {
    const size_t used = size();
    if (used + n <= capacity_) {
      std::memmove(bytes_.get(), data(), used);
    } else {
      size_t bigger = capacity_ == 0 ? 4096 : capacity_;
      while (bigger < used + n) bigger *= 2;
      auto fresh = std::make_unique_for_overwrite<char[]>(bigger);
      if (used > 0) std::memcpy(fresh.get(), data(), used);
      bytes_ = std::move(fresh);
      capacity_ = bigger;
    }
    begin_ = 0;
    end_ = used;
  }

  std::unique_ptr<char[]> bytes_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace shoal::ps
