// One connection of a client: frames over a TCP or unix socket, over shared memory, or over UCX.
// With shared memory or UCX the socket beside it carries only wake-ups and the end of the
// connection.
//
// Sending: callers' threads. Receiving: the thread that waits for an answer polls (Poll). When no
// caller has polled for some milliseconds, or all have gone to sleep (StopPolling), the loop's
// thread takes over: it watches the socket (or the pipe's descriptor), and the server sends
// wake-ups. While a waiter polls, neither side needs a system call for shared memory.
//
// Socket sends are batched while a response is outstanding: the thread that receives it, or waits
// for it, sends all queued requests in one system call. A lone request goes out at once, and the
// slower the server, the larger the batches (docs/adr/0044-requests-wait-for-company.md).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/mutex.h"
#include "net/tcp_keep_alive.h"
#include "ps/transport/client_loop.h"
#include "ps/transport/send_queue.h"
#include "ps/transport/shared_ring.h"
#include "ps/transport/transport.h"
#include "ps/transport/ucx_pipe.h"
#include "ps/wire/byte_buffer.h"

namespace shoal::ps {

class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  // `received`: what came behind the handshake. `memory`: what the server handed over, if it did.
  // `pipe`: connected, if the connection goes over UCX; may be null.
  ClientConnection(UniqueFd fd, ByteBuffer received, std::optional<SharedRings> memory,
                   std::unique_ptr<UcxPipe> pipe, std::shared_ptr<ClientLoop> loop);

  // As Connection's.
  void Start(ConnectionHandler* handler);
  void Send(const Outgoing& out);
  // The socket's: through shared memory plain keys are quicker.
  bool SavesBytes() const { return !memory_.has_value(); }
  bool Takes(size_t bytes);
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
    ReceiveLock(ClientConnection* stream, bool wait) ACQUIRE(stream->rx_mu_);
    ~ReceiveLock() RELEASE();
    bool mine() const { return lock_.owns_lock(); }

   private:
    ClientConnection* const stream_;
    std::unique_lock<Mutex> lock_;
  };

  // Frames come over the socket itself.
  bool plain() const { return !memory_.has_value() && pipe_ == nullptr; }
  // The descriptor that is watched while no caller polls; wake-ups of the rings come over the
  // socket.
  int wakes_by() const { return pipe_ != nullptr ? pipe_->event_fd() : fd_.get(); }
  // As the socket is to be watched, or the pipe.
  uint32_t Wanted() const REQUIRES(watch_mu_);

  // Under ReceiveLock. All of what has come; true if there was something.
  bool Receive() REQUIRES(rx_mu_);
  Status ReceiveStream(bool* some) REQUIRES(rx_mu_);
  Status ReceivePipe(bool* some) REQUIRES(rx_mu_);
  Status ReceiveRing(bool* some) REQUIRES(rx_mu_);
  Status HandleFrames() REQUIRES(rx_mu_);
  Status HandleRingFrames() REQUIRES(rx_mu_);
  void HandleFrame(const FrameHeader& head, std::string_view payload) REQUIRES(rx_mu_);
  void End(const Status& why) REQUIRES(rx_mu_);
  // Lets the loop's thread take over; handles what came meanwhile.
  void ReturnToLoop() REQUIRES(rx_mu_);
  // False: it must be looked at again soon.
  bool PipeSleeps() REQUIRES(rx_mu_);
  // Sends what waits for room; tells the handler that there is room if it asked.
  void RetrySend() REQUIRES(rx_mu_);
  void Uncork();

  // Under out_mu_.
  bool MayWait() REQUIRES(out_mu_);
  void QueueRows(FrameHeader head, const RowChunk& rows) REQUIRES(out_mu_);
  bool WriteToRing(FrameHeader head, const RowChunk& rows) REQUIRES(out_mu_);
  void Drain() REQUIRES(out_mu_);
  void DrainToRing() REQUIRES(out_mu_);

  void Rewatch();

  const UniqueFd fd_;
  const std::shared_ptr<ClientLoop> loop_;
  const std::optional<SharedRings> memory_;
  const std::unique_ptr<UcxPipe> pipe_;

  Mutex rx_mu_;
  std::atomic<std::thread::id> receiver_{};  // the thread that holds rx_mu_
  ConnectionHandler* handler_ GUARDED_BY(rx_mu_) = nullptr;
  ByteBuffer in_ GUARDED_BY(rx_mu_);
  std::optional<RingReader> reader_ GUARDED_BY(rx_mu_);
  std::string copied_ GUARDED_BY(rx_mu_);  // a control frame's payload, out of the server's reach
  bool ended_ GUARDED_BY(rx_mu_) = false;
  bool polled_ GUARDED_BY(rx_mu_) = false;
  uint64_t looked_polls_ GUARDED_BY(rx_mu_) = 0;
  std::atomic<uint64_t> polls_{0};
  std::atomic<bool> closed_{false};

  Mutex out_mu_;
  SendQueue out_ GUARDED_BY(out_mu_);
  std::optional<RingWriter> writer_ GUARDED_BY(out_mu_);
  std::string scratch_ GUARDED_BY(out_mu_);
  bool shut_ GUARDED_BY(out_mu_) = false;   // nothing more is sent
  uint64_t asked_ GUARDED_BY(out_mu_) = 0;  // requests that were queued or sent,
  uint64_t sent_ GUARDED_BY(out_mu_) = 0;   // and when the kernel was last offered all of them
  std::atomic<bool> blocked_{false};        // written under out_mu_
  std::atomic<bool> wants_room_{false};
  std::atomic<bool> corked_{false};    // requests wait to be batched
  std::atomic<uint64_t> answered_{0};  // requests; written under ReceiveLock

  net::PeerLivenessCheck silence_;  // the loop's thread's
  Mutex watch_mu_;
  bool watched_ GUARDED_BY(watch_mu_) = false;
  bool reads_here_ GUARDED_BY(watch_mu_) = true;  // the loop's thread reads the socket
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
