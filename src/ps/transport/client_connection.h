// One connection of a client: frames over a byte stream (byte_stream.h). With shared memory or UCX
// the socket beside it carries only wake-ups and the end of the connection.
//
// Sending: callers' threads (request_sender.h). Receiving: the thread that waits for an answer
// polls (Poll). When no caller has polled for some milliseconds, or all have gone to sleep
// (StopPolling), the loop's thread takes over: it watches the socket (or the stream's descriptor),
// and the server sends wake-ups. While a waiter polls, neither side needs a system call for shared
// memory.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <thread>

#include "base/file.h"
#include "base/mutex.h"
#include "net/tcp_keep_alive.h"
#include "ps/transport/byte_stream.h"
#include "ps/transport/client_loop.h"
#include "ps/transport/frame_reader.h"
#include "ps/transport/request_sender.h"
#include "ps/transport/transport.h"

namespace shoal::ps {

class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  // `fd`: the socket, through the handshake. `stream`: over it, or beside it.
  ClientConnection(UniqueFd fd, std::unique_ptr<ByteStream> stream,
                   std::shared_ptr<ClientLoop> loop);

  // As Connection's.
  void Start(ConnectionHandler* handler);
  void Send(const Outgoing& out);
  // The socket's: through shared memory plain keys are quicker.
  bool SavesBytes() const { return !stream_->in_shared_memory(); }
  bool Takes(size_t bytes) { return sender_.Takes(bytes); }
  PollResult Poll();
  void StopPolling();
  void Close();

  // The loop's thread.
  void OnEvents(uint32_t events);
  // True while a caller still polls; else the loop's thread takes over.
  bool StillPolled();
  // Ends the connection if the server's host has vanished.
  void CloseIfSilent(TimePoint now);
  int fd() const { return fd_.get(); }

 private:
  // The right to receive, which one thread has at a time.
  // Clang is told that it always gets it: a caller that does not wait looks at mine().
  class SHOAL_THREAD_SAFETY(scoped_lockable) ReceiveLock {
   public:
    ReceiveLock(ClientConnection* connection, bool wait) ACQUIRE(connection->rx_mu_);
    ~ReceiveLock() RELEASE();
    bool mine() const { return lock_.owns_lock(); }

   private:
    ClientConnection* const connection_;
    std::unique_lock<Mutex> lock_;
  };

  // The descriptor that is watched while no caller polls; wake-ups of the rings come over the
  // socket.
  int wakes_by() const { return stream_->event_fd() >= 0 ? stream_->event_fd() : fd_.get(); }
  // As the socket is to be watched, or the stream's descriptor.
  uint32_t Wanted() const REQUIRES(watch_mu_);
  // Whether the loop's thread reads, or a caller polls.
  void SetReader(bool loop_reads);
  // Watches for what is wanted by now.
  void Rewatch();

  // Under ReceiveLock. All of what has come; true if there was something.
  bool Receive() REQUIRES(rx_mu_);
  Status ReceiveFrames(bool* some) REQUIRES(rx_mu_);
  Status HandleFrames() REQUIRES(rx_mu_);
  void HandleFrame(const FrameHeader& head, std::string_view payload) REQUIRES(rx_mu_);
  void End(const Status& why) REQUIRES(rx_mu_);
  // Lets the loop's thread take over; handles what came meanwhile.
  void ReturnToLoop() REQUIRES(rx_mu_);
  // False: it must be looked at again soon.
  bool StreamSleeps() REQUIRES(rx_mu_);
  // Sends what waits for room; tells the handler that there is room if it asked.
  void RetrySend() REQUIRES(rx_mu_);
  void Uncork();

  const UniqueFd fd_;
  const std::shared_ptr<ClientLoop> loop_;
  const std::unique_ptr<ByteStream> stream_;  // receiving under rx_mu_, sending by sender_
  RequestSender sender_;

  Mutex rx_mu_;
  std::atomic<std::thread::id> receiver_{};  // the thread that holds rx_mu_
  ConnectionHandler* handler_ GUARDED_BY(rx_mu_) = nullptr;
  FrameReader frames_ GUARDED_BY(rx_mu_);
  bool ended_ GUARDED_BY(rx_mu_) = false;
  bool polled_ GUARDED_BY(rx_mu_) = false;
  uint64_t looked_polls_ GUARDED_BY(rx_mu_) = 0;
  std::atomic<uint64_t> polls_{0};
  std::atomic<bool> closed_{false};

  net::PeerLivenessCheck silence_;  // the loop's thread's
  Mutex watch_mu_;
  bool watched_ GUARDED_BY(watch_mu_) = false;
  bool loop_reads_ GUARDED_BY(watch_mu_) = true;  // the loop's thread reads the socket
  uint32_t events_ GUARDED_BY(watch_mu_) = 0;
};

// The Connection that a channel owns; its destruction closes the connection.
class ClientConnectionHandle final : public Connection {
 public:
  explicit ClientConnectionHandle(std::shared_ptr<ClientConnection> stream)
      : stream_(std::move(stream)) {}
  ~ClientConnectionHandle() override { Close(); }
  void Start(ConnectionHandler* handler) override { stream_->Start(handler); }
  void Send(const Outgoing& out) override { stream_->Send(out); }
  bool SavesBytes() const override { return stream_->SavesBytes(); }
  void FlushReplies() override {}
  bool Takes(size_t bytes) override { return stream_->Takes(bytes); }
  PollResult Poll() override { return stream_->Poll(); }
  void StopPolling() override { stream_->StopPolling(); }
  void Close() override { stream_->Close(); }

 private:
  const std::shared_ptr<ClientConnection> stream_;
};

}  // namespace shoal::ps
