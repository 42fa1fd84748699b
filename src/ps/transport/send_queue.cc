#include "ps/transport/send_queue.h"

#include <algorithm>

#include "ps/transport/byte_stream.h"

namespace shoal::ps {

void SendQueue::Commit(size_t n) {
  if (n == 0) return;
  own_.Commit(n);
  size_ += n;
  if (first_ < pieces_.size() && pieces_.back().at == nullptr) {
    pieces_.back().size += n;
  } else {
    pieces_.push_back({nullptr, n});
  }
}

void SendQueue::Append(const void* from, size_t n) {
  if (n == 0) return;
  std::memcpy(own_.Reserve(n), from, n);
  Commit(n);
}

void SendQueue::Refer(const void* from, size_t n) {
  if (n == 0) return;
  pieces_.push_back({static_cast<const char*>(from), n});
  size_ += n;
}

void SendQueue::Consume(size_t n) {
  size_ -= n;
  while (n > 0) {
    Piece& piece = pieces_[first_];
    const size_t step = std::min(n, piece.size);
    if (piece.at == nullptr) {
      own_.Consume(step);
    } else {
      piece.at += step;
    }
    piece.size -= step;
    n -= step;
    if (piece.size == 0) ++first_;
  }
  if (size_ > 0) return;
  pieces_.clear();
  first_ = 0;
}

void SendQueue::Clear() { Consume(size_); }

size_t SendQueue::Gather(Vectors* vectors, size_t* offered) {
  size_t n = 0;
  *offered = 0;
  char* own = own_.data();
  for (size_t i = first_; i < pieces_.size() && n < vectors->size(); ++i, ++n) {
    const Piece& piece = pieces_[i];
    (*vectors)[n] = {piece.at == nullptr ? own : const_cast<char*>(piece.at), piece.size};
    if (piece.at == nullptr) own += piece.size;
    *offered += piece.size;
  }
  return n;
}

bool SendQueue::Send(ByteStream* stream) {
  Vectors vectors;
  while (!empty()) {
    size_t offered = 0, taken = 0;
    const size_t n = Gather(&vectors, &offered);
    if (!stream->Send({vectors.data(), n}, &taken).ok()) {
      Clear();
      return true;
    }
    Consume(taken);
    if (taken < offered) return false;
  }
  return true;
}

}  // namespace shoal::ps
