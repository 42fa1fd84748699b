// One client's connection at the server: frames out of its byte stream (byte_stream.h) to the core,
// answers into it.
//
// Belongs to one TcpLane's thread; only Reply, CloseAfterFlush and FlushReplies come from others
// (server_connection.h).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "ps/server/answer_queue.h"
#include "ps/server/server_core.h"
#include "ps/transport/byte_stream.h"
#include "ps/transport/frame_reader.h"
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
  size_t queued() const override { return answers_.unsent(); }

  // The lane's thread.
  // Sends the challenge; may be followed by WantsToWrite.
  NextStep Open();
  NextStep OnReadable();
  // Sends what is queued, then handles the requests that were held back because of it.
  NextStep OnWritable();
  // After kMove, on the new lane's thread: joins the session and goes on with what was received.
  NextStep Adopt(std::shared_ptr<Mailbox> mailbox);
  void Closed();

  // The lane polls it for the rest of its life, once Adopt has handed it over, because the socket
  // reports only the end.
  bool polled() const { return stream_->polled(); }
  // Polls once: handles what has arrived or had to wait. *some: there was something.
  NextStep Poll(bool* some);
  // For connections that are polled. From now on the client sends wake-ups. kDataPending: there is
  // something to do, do not sleep; kSending: sleep for a millisecond at most.
  SleepResult Sleep();
  void Awake() { stream_->Awake(); }

  int fd() const { return fd_.get(); }
  // Another that wakes the lane; -1: none.
  int event_fd() const { return stream_->event_fd(); }
  bool joined() const { return state_ == State::kJoined; }
  uint32_t lane() const { return hello_.lane; }
  TimePoint opened() const { return opened_; }
  bool WantsToWrite() const { return answers_.blocked() && !polled(); }
  // Nothing is read from a client that does not read its answers.
  bool WantsToRead() const { return !held_back_ || polled(); }
  const Status& end() const { return end_; }
  const std::string& name() const { return name_; }

 private:
  enum class State { kAwaitsProof, kMoving, kJoined };

  NextStep Fail(Status why);
  // Handles what has come, and sends the answers.
  NextStep Handle();
  // Handles complete frames; *more if it stopped for another reason than their end.
  Status HandleFrames(bool* more);
  Status HandleOne(const FrameHeader& head, std::string_view payload);
  Status HandleProof(const FrameHeader& head, std::string_view payload);
  Status HandleRows(const FrameHeader& head, std::string_view payload);
  // Applies a row operation. *order: the stream is broken.
  Status Apply(Session* session, const FrameHeader& head, const RowSource& source, bool* order);
  // The same where the answer must wait until the lane's backup has what it could have seen.
  Status HandleRowsLate(Session* session, const FrameHeader& head, RowSource source);
  // Whether the next request must wait: until the answers before it are sent and its own has a
  // place, or until the backup is no longer too far behind.
  bool MustWait(const FrameHeader& head);
  NextStep Join();
  // Sends the welcome, the last frame over the socket where another stream follows it.
  Status SendWelcome(const Welcome& welcome, std::unique_ptr<UcxPipe> pipe);
  // With the welcome's `frame`. Unavailable: there is no memory for rings.
  Status HandOverRings(const std::string& frame);
  Result<std::unique_ptr<UcxPipe>> OpenPipe();
  Status Send();
  // Gives the client the room of its requests, and shows it the answers in the stream's memory.
  Status Publish();
  Lane& lane_of_hello() { return core_->lane(hello_.lane); }

  UniqueFd fd_;
  ServerCore* core_;  // the listening one, then the one that serves the wanted index
  std::shared_ptr<ServerCore> kept_;  // keeps it alive where that is another one
  std::shared_ptr<Mailbox> mailbox_;
  const TimePoint opened_;
  const std::string name_;
  State state_ = State::kAwaitsProof;
  Nonces nonces_;
  Hello hello_;
  std::unique_ptr<ByteStream> stream_;  // the socket's during the handshake
  FrameReader frames_;
  AnswerQueue answers_;
  std::string keys_;            // of a request in shared memory, out of the client's reach
  std::string late_;            // rows of an answer that waits
  bool held_back_ = false;      // too many answers are unread
  bool must_wait_ = false;      // a request waits: see MustWait
  bool client_closed_ = false;  // the client closed; what it wrote before is still handled
  Status end_;
};

}  // namespace shoal::ps
