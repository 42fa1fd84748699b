#include "ps/transport/send_queue.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "ps/transport/ucx_pipe.h"

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

bool SendQueue::Send(UcxPipe* pipe) {
  Vectors vectors;
  while (!empty()) {
    size_t offered = 0;
    const size_t n = Gather(&vectors, &offered);
    const size_t sent = pipe->Send({vectors.data(), n});
    Consume(sent);
    if (sent < offered) return false;
  }
  return true;
}

bool SendQueue::Send(int fd) {
  Vectors vectors;
  while (!empty()) {
    size_t offered = 0;
    const size_t n = Gather(&vectors, &offered);
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = n;
    const ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (sent < 0) {
      Clear();
      return true;
    }
    Consume(static_cast<size_t>(sent));
    if (static_cast<size_t>(sent) < offered) return false;
  }
  return true;
}

}  // namespace shoal::ps
