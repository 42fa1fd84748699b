// One client's connection at the server, over a TCP or unix socket, or over shared memory with the
// unix socket beside it for wake-ups and for its end: bytes in, frames to the core, answers out.
//
// Belongs to one TcpLane's thread; only Reply, CloseAfterFlush and FlushReplies come from others
// (server_connection.h).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "ps/server/server_core.h"
#include "ps/transport/shared_ring.h"
#include "ps/transport/ucx_pipe.h"
#include "ps/wire/byte_buffer.h"
#include "ps/wire/handshake.h"

namespace shoal::ps {

class TcpConnection;

// Requests of other threads to a lane's thread: connections to flush, to adopt, and to stop.
// Shared: it outlives the thread, so that late flushes find it.
struct Mailbox {
  Mutex mu;
  std::vector<std::shared_ptr<TcpConnection>> flush GUARDED_BY(mu);
  std::vector<std::shared_ptr<TcpConnection>> adopt GUARDED_BY(mu);  // moved here from lane 0
  bool stop GUARDED_BY(mu) = false;
  UniqueFd wake;  // eventfd
  void Wake();
};

// Lifecycle: Open sends the challenge; after the proof OnReadable returns kMove, and Adopt on the
// thread of the wanted lane joins the session; Closed is the last call. A connection over shared
// memory or UCX is polled (Poll, Sleep) from then on.
//
// Thread rules: all functions belong to the present lane's thread, except Reply and CloseAfterFlush
// (any thread, under the lane's lock), FlushReplies and queued (any thread).
class TcpConnection final : public ServerConnection,
                            public std::enable_shared_from_this<TcpConnection> {
 public:
  // The next step of the lane's thread.
  enum class NextStep { kWait, kMove, kClose };

  TcpConnection(UniqueFd fd, ServerCore* core, std::shared_ptr<Mailbox> mailbox);
  ~TcpConnection() override;

  // ServerConnection.
  void Reply(const FrameHeader& head, std::string_view body) override;
  void CloseAfterFlush(const Status& why) override;
  void FlushReplies() override;
  size_t queued() const override { return queued_.load(std::memory_order_relaxed); }

  // The lane's thread.
  // Sends the challenge; may be followed by WantsToWrite.
  NextStep Open();
  NextStep OnReadable();
  // Sends what is queued, then handles the requests that were held back because of it.
  NextStep OnWritable();
  // After kMove, on the new lane's thread: joins the session and goes on with what was received.
  NextStep Adopt(std::shared_ptr<Mailbox> mailbox);
  void Closed();

  // Over shared memory, for the rest of its life once Adopt has handed it over.
  bool uses_ring() const { return reader_.has_value(); }
  // Over shared memory or UCX: the lane polls it, because the socket reports only the end.
  bool polled() const { return uses_ring() || pipe_ != nullptr; }
  // Polls once: handles what has arrived or had to wait. *some: there was something.
  NextStep Poll(bool* some);
  enum class SleepResult { kYes, kNo, kShortly };
  // For connections that are polled. From now on the client sends wake-ups. kNo: there is something
  // to do, do not sleep; kShortly: sleep for a millisecond at most.
  SleepResult Sleep();
  void Awake() {
    if (uses_ring()) reader_->ClearSleeping();
  }

  int fd() const { return fd_.get(); }
  // Another that wakes the lane; -1: none.
  int event_fd() const { return pipe_ != nullptr ? pipe_->event_fd() : -1; }
  bool joined() const { return state_ == State::kJoined; }
  bool unproven() const { return state_ == State::kAwaitsProof; }
  uint32_t lane() const { return hello_.lane; }
  TimePoint opened() const { return opened_; }
  bool WantsToWrite() const { return blocked_ && !polled(); }
  // Nothing is read from a client that does not read its answers.
  bool WantsToRead() const { return !held_back_ || polled(); }
  const Status& end() const { return end_; }
  const std::string& name() const { return name_; }

 private:
  enum class State { kAwaitsProof, kMoving, kJoined };

  NextStep Fail(Status why);
  NextStep Handle();
  // Handles complete frames; true if it stopped for another reason than their end.
  Status HandleFrames(bool* more);
  Status HandleRingFrames(bool* more);
  // Gathers a frame that is too long to be handled in the ring; *whole once it is there.
  Status GatherFrame(bool* whole);
  Status HandleOne(const FrameHeader& head, std::string_view payload);
  Status HandleProof(const FrameHeader& head, std::string_view payload);
  Status HandleRows(const FrameHeader& head, std::string_view payload);
  // Applies a row operation. *order: the stream is broken.
  Status Apply(Session* session, const FrameHeader& head, const RowSource& source, bool* order);
  // The same where the answer must wait until the lane's backup has what it could have seen.
  Status HandleRowsLate(Session* session, const FrameHeader& head, RowSource source);
  // True if nothing more may be read because the backup is too far behind.
  bool WaitsForBackup(Lane* lane);
  NextStep Join();
  Status SendWelcome(const Welcome& welcome);
  Status SendMemoryDescriptor(const std::string& frame);
  Status OpenPipe();
  NextStep PollPipe(bool* some);
  // Has the socket or the pipe take the first of `sending_`; -1 and EAGAIN: it takes nothing now.
  long SendFirst();
  // Where an answer of `size` bytes is built, and its end.
  char* BeginAnswer(size_t size);
  void EndAnswer(size_t size);
  Status Send();
  void UpdateQueuedBytes();
  Status SendToRing();
  void PublishToRing();
  void QueueControl(FrameType type, uint64_t id, std::string_view body);

  UniqueFd fd_;
  ServerCore* core_;  // the listening one, then the one that serves the wanted index
  std::shared_ptr<ServerCore> kept_;  // keeps it alive where that is another one
  std::shared_ptr<Mailbox> mailbox_;
  const TimePoint opened_;
  const std::string name_;
  State state_ = State::kAwaitsProof;
  Nonces nonces_;
  Hello hello_;
  ByteBuffer in_;
  ByteBuffer sending_;             // the lane's thread's
  bool blocked_ = false;           // the kernel took less than was offered
  size_t read_ = 0;                // bytes, from the socket
  bool held_back_ = false;         // too many answers are unread
  std::atomic<size_t> queued_{0};  // bytes of answers, when last looked at
  bool closing_ = false;           // shut_, likewise
  Status end_;

  std::unique_ptr<UcxPipe> pipe_;
  std::optional<SharedRings> memory_;
  std::optional<RingReader> reader_;
  std::optional<RingWriter> writer_;
  std::string late_;            // rows of an answer that waits
  std::string copied_;          // what is checked before use, out of the client's reach
  bool in_place_ = false;       // the answer under way is built in the ring
  bool wants_room_ = false;     // a request waits until its answer has a place in the ring
  bool client_closed_ = false;  // the client closed; what it wrote before is still handled

  ByteBuffer out_;       // under the lane's lock once joined
  bool shut_ = false;    // likewise
  std::string scratch_;  // likewise
};

}  // namespace shoal::ps
