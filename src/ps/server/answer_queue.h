// The sending half of a client's connection at the server: answers that were queued and not yet
// taken by the stream.
//
// Answers are queued under the lock of the connection's lane, by any thread, and sent without it,
// by the lane's thread (tcp_connection.cc). An answer with nothing before it is built in the
// stream's own memory where that has a place for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ps/lane/lane.h"
#include "ps/transport/byte_stream.h"
#include "ps/wire/byte_buffer.h"
#include "ps/wire/frame.h"

namespace shoal::ps {

// Owned by a TcpConnection. Before JoinLane everything belongs to the thread that has the
// connection.
class AnswerQueue {
 public:
  // From now on other threads queue answers too, under this lane's lock. The lane outlives the
  // queue.
  void JoinLane(Lane* lane) { lane_ = lane; }

  // --- Under the lane's lock ---
  // Queues a control frame.
  void Append(const FrameHeader& head, std::string_view body);
  void Append(FrameType type, uint64_t id, std::string_view body);
  // Nothing is queued any more; Finished is true once all of it is sent.
  void Shut() { shut_ = true; }
  bool shut() const { return shut_; }
  // Bytes that were queued since Send last took them.
  size_t waiting() const { return queued_.size(); }

  // --- Under the lane's lock, by the lane's thread ---
  // Nothing is queued, and the stream has taken all that was.
  bool empty() const { return queued_.empty() && sending_.empty(); }
  // Where an answer of `size` bytes is to be written; End queues it. True: it was written into the
  // stream, which must Publish it.
  char* Begin(size_t size, ByteStream* stream);
  bool End(size_t size, ByteStream* stream);

  // --- By the lane's thread, without the lock ---
  // Offers everything to the stream; *taken: how many bytes it took. An error: it is broken.
  Status Send(ByteStream* stream, size_t* taken);
  // The stream took only a part of what Send offered last.
  bool blocked() const { return blocked_; }
  // Counts anew what is unsent.
  void Measure();
  // By the last Measure: it was shut, and all of it is sent.
  bool Finished() const { return finished_; }

  // Bytes that the client had not taken at the last Measure. Any thread.
  size_t unsent() const { return unsent_.load(std::memory_order_relaxed); }

 private:
  Lane* lane_ = nullptr;
  // Under the lane's lock:
  ByteBuffer queued_;
  std::string scratch_;
  bool shut_ = false;
  bool in_place_ = false;  // the answer under way is built in the stream
  // The lane's thread's:
  ByteBuffer sending_;
  bool blocked_ = false;
  bool finished_ = false;
  std::atomic<size_t> unsent_{0};
};

}  // namespace shoal::ps
