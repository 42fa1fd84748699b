// The sending half of a client's connection: writes requests into the stream, or queues them until
// it has room.
//
// Sends over a socket or UCX are batched while a response is outstanding: the thread that receives
// it, or waits for it, sends all queued requests in one system call. A lone request goes out at
// once, and the slower the server, the larger the batches (docs/adr/0044-batched-socket-sends.md).
// Into shared memory each request is written at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/mutex.h"
#include "ps/transport/byte_stream.h"
#include "ps/transport/send_queue.h"
#include "ps/transport/transport.h"

namespace shoal::ps {

// Owned by a ClientConnection. Thread-safe; callers of Send must see to the order of their
// requests. Rows of requests are not copied where they are many: they must stay valid until the
// answer, or until Close.
class RequestSender {
 public:
  // The sending half of *stream is this object's alone.
  explicit RequestSender(ByteStream* stream) : stream_(stream) {}

  // True: the stream took only a part, so the caller has its socket watched for room.
  [[nodiscard]] bool Send(const Outgoing& out);
  // Sends the requests that wait to be batched; returns as Send.
  [[nodiscard]] bool Uncork();
  // Requests wait to be batched.
  bool corked() const { return corked_; }
  // The stream took only a part of what was offered to it last.
  bool blocked() const { return blocked_.load(std::memory_order_relaxed); }
  // Whether a frame of this many bytes would be taken now rather than queued. If not, Retry tells
  // once it would.
  bool Takes(size_t bytes);
  // Offers the stream what it did not take. True: a frame that Takes refused may be sent now.
  [[nodiscard]] bool Retry();
  // A request was answered. For the thread that receives.
  void CountAnswer() { answered_ = answered_ + 1; }
  // Drops what is queued; nothing is sent any more, and no rows are read.
  void Close();

 private:
  // Whether an answer is certain to come to something that is out already.
  bool MayWait() REQUIRES(mu_);
  void QueueRows(FrameHeader head, const RowChunk& rows) REQUIRES(mu_);
  // Writes the frame into the stream's own memory; false if it has no place for it.
  bool PlaceRows(FrameHeader head, const RowChunk& rows) REQUIRES(mu_);
  void Drain() REQUIRES(mu_);

  ByteStream* const stream_;
  Mutex mu_;
  SendQueue queue_ GUARDED_BY(mu_);
  std::string scratch_ GUARDED_BY(mu_);
  bool shut_ GUARDED_BY(mu_) = false;
  uint64_t asked_ GUARDED_BY(mu_) = 0;  // requests that were queued or sent,
  uint64_t sent_ GUARDED_BY(mu_) = 0;   // and when the stream was last offered all of them
  std::atomic<bool> blocked_{false};    // written under mu_
  std::atomic<bool> wants_room_{false};
  std::atomic<bool> corked_{false};
  std::atomic<uint64_t> answered_{0};  // requests; written by the thread that receives
};

}  // namespace shoal::ps
