// The bytes that wait to be sent over a socket, in order: bytes of its own, and rows in their
// owner's memory, offered to the kernel together in as few system calls as possible.
//
// Used by client_connection.cc under its lock, and for UCX likewise. Allocates nothing once warm.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <vector>

#include "ps/wire/byte_buffer.h"

namespace shoal::ps {

class UcxPipe;

class SendQueue {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Room for `n` own bytes behind the end; then Commit what was written.
  char* Reserve(size_t n) { return own_.Reserve(n); }
  void Commit(size_t n);
  void Append(const void* from, size_t n);
  // Bytes that stay where they are: theirs must not change before they are sent or cleared.
  void Refer(const void* from, size_t n);

  // Offers everything to the non-blocking socket. False: it took only a part. What a broken
  // connection does not take is dropped; its end shows when it is read.
  bool Send(int fd);
  // The same over UCX.
  bool Send(UcxPipe* pipe);

  // The first bytes, in one piece: for a queue without references.
  const char* data() { return own_.data(); }
  void Consume(size_t n);
  void Clear();
  // Gives memory back that one huge frame had needed.
  void ShrinkTo(size_t capacity) { own_.ShrinkTo(capacity); }

 private:
  struct Piece {
    const char* at;  // null: the next of own_
    size_t size;
  };
  static constexpr size_t kPiecesACall = 64;
  using Vectors = std::array<iovec, kPiecesACall>;

  // The first pieces as the kernel takes them; returns how many, *offered: bytes.
  size_t Gather(Vectors* vectors, size_t* offered);

  ByteBuffer own_;
  std::vector<Piece> pieces_;
  size_t first_ = 0;  // piece that is not yet sent whole
  size_t size_ = 0;
};

}  // namespace shoal::ps
