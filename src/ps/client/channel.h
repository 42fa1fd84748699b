// A client's channel to one lane of one server, over any number of successive connections.
//
// Row operations and markers get sequence numbers and are kept until answered; after a reconnection
// they are sent again, and the server recognises those that it has applied
// (docs/design/push-pull.md). Control requests are kept likewise, by id.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "ps/client/ticket_table.h"
#include "ps/transport/transport.h"
#include "ps/wire/key_codec.h"

namespace shoal::ps {

// The end of a wait.
enum class Awaited : uint8_t { kDone, kLate, kInterrupted };

// A control request under way. Shared by its caller and its channel, whose lock guards it.
struct Call {
  FrameHeader head;
  std::string body;
  bool same_instance = false;  // fail rather than ask a restarted server
  bool done = false;           // answered or failed
  Status status;
  std::string reply;
};

// A chunk that was refused because some of its rows had moved. Nothing of it was applied; or, if
// `applied`, all of it, and only the rows of its answer are missing.
struct Redirect {
  FrameHeader head;
  RowChunk part;               // its `pick` points to the next field
  std::vector<uint32_t> pick;  //
  std::string coded;           // deltas as they travel, if they are not f32
  std::string argument;        // a call's
  uint32_t ticket = 0;
  bool applied = false;
  int server = 0;      // that refused it
  int64_t after = -1;  // the checkpoint whose marker it had followed there
  TimePoint since{};   // when it was refused first
};

// Lifecycle: made disconnected; Resume gives it a connection, and again a new one after each loss;
// Suspend parks it while the client needs nothing of the server; Fail or Close ends it for good.
// What is unanswered is kept over a loss and sent again, so that each request is applied once.
//
// Thread-safe. Hooks are called without the channel's lock, from receiving threads or from the
// caller's. `tickets` must outlive the channel. Memory: at most window_bytes of unanswered rows.
class Channel final : public ConnectionHandler {
 public:
  // Events for the client.
  struct Hooks {
    std::function<void(Channel*)> lost;                      // the connection is gone: dial again
    std::function<void(int64_t checkpoint)> marker_request;  // the leader asks for markers
    // A marker of this checkpoint is answered, and so is all that was sent before it; or both never
    // will be.
    std::function<void(int64_t checkpoint, bool failed)> marker_answered;
    std::function<void(Redirect)> moved;           // to be sent elsewhere
    std::function<void(int server)> shards_moved;  // the server says that some have moved
    std::function<bool()> interrupted;             // ClientOptions::interrupted
  };
  Channel(int server, uint32_t lane, size_t window_bytes, TicketTable* tickets, Hooks hooks);
  ~Channel() override;

  int server() const { return server_; }
  uint32_t lane() const { return lane_; }
  // "server 1 (127.0.0.1:41233)", for messages.
  std::string Name() const;

  // Puts a new connection to use: `tables` are created again if the server is another instance
  // than before, then everything unanswered is sent again.
  // `wakes`: also a suspended channel.
  void Resume(std::string address, OpenedConnection dialled, const std::vector<std::string>& tables,
              bool wakes = false);
  // Drops a connection to another address than this, so that it is dialled again: a server that
  // Members names elsewhere has been started again, and its old host may have vanished silently.
  void DisconnectUnlessAt(const std::string& address);
  // From now on every new connection sends kLeave again: a server would count a worker that
  // reconnects.
  void SetLeft();
  // Gives up: everything under way and to come fails with `why`.
  void Fail(const Status& why);
  // Ends the connection, for good. Afterwards no hook is called. Not from within a hook.
  void Close();
  bool up() const;
  bool failed() const;
  uint64_t first_unanswered() const;

  // Parks the channel to a server that owns nothing that this client needs: it is not dialled, and
  // calls over it fail at once. Resume ends that. False: something is unanswered.
  bool Suspend();
  bool suspended() const { return suspended_; }
  // No answer is outstanding.
  bool idle() const;

  // Sends one chunk of the request `ticket`, which then counts one more chunk. Blocks while the
  // window is full. `since`: when a redirected chunk was first refused.
  Status SendChunk(FrameHeader head, const RowChunk& part, uint32_t ticket, TimePoint deadline,
                   TimePoint since = {});
  // `head`: of a marker, or that it is settled. False: it was not sent, because the channel is down
  // or has too many unanswered; else Hooks::marker_answered is called once, also when it is let go
  // of. Never blocks.
  bool SendMarker(FrameHeader head, const std::string& progress);
  // Without an answer; lost when the connection is down.
  void SendNotice(FrameHeader head, std::string_view body);

  std::shared_ptr<Call> StartCall(FrameHeader head, std::string body, bool same_instance);
  // Waits for the reply; withdraws the call if the deadline passes.
  Result<std::string> FinishCall(const std::shared_ptr<Call>& call, TimePoint deadline);

  // Null: down. For polling; see Connection::Poll.
  std::shared_ptr<Connection> connection() const;

  // True if a chunk of this request is unanswered here.
  bool HasUnanswered(uint32_t ticket) const;
  // Waits until what was issued before is answered.
  Status Flush(TimePoint deadline);

  Counters counters() const;

  // ConnectionHandler.
  void OnFrame(const FrameHeader& head, std::string_view body) override;
  void OnRoom() override;
  void OnClosed(const Status& why) override;

 private:
  static constexpr size_t kSlots = 1024;
  static constexpr size_t kSlotsForMarkers = 16;
  static constexpr uint32_t kNoTicket = UINT32_MAX;
  // One unanswered part or marker.
  struct Pending {
    FrameHeader head;
    RowChunk part;
    std::vector<uint32_t> pick;  // part.pick's own copy; its memory is reused
    std::string coded;           // part.coded's own copy
    std::string body;            // markers; a call's argument
    uint32_t ticket = kNoTicket;
    size_t bytes = 0;
    TimePoint since{};
  };

  // Waits, with polling at first, until `done` holds, the deadline has passed or the caller's
  // program was interrupted. `lock` is mu_'s, let go of meanwhile.
  template <typename Done>
  Awaited Await(MutexLock* lock, TimePoint deadline, const Done& done)
      REQUIRES(mu_) NO_THREAD_SAFETY_ANALYSIS;

  Pending& SlotOf(uint64_t seq) { return slots_[seq % kSlots]; }
  bool HasUnansweredChunks() const;
  // Of which checkpoints markers are unanswered.
  std::vector<int64_t> UnansweredMarkers() const;
  void SendPending(Connection* connection, const Pending& pending);
  void OnAnswer(const FrameHeader& head, std::string_view body);
  void OnReply(const FrameHeader& head, std::string_view body);
  void OnMoved(const FrameHeader& head);
  Status CheckAnswer(const FrameHeader& head, std::string_view body);
  // Under the lock. The oldest request is answered: its slot is free. Returns its ticket, to
  // CompleteChunk without the lock.
  uint32_t RetireOldest(Pending* oldest);
  void CompleteChunk(uint32_t ticket, const Status& status);
  void FailConnection(const Status& why);

  const int server_;
  const uint32_t lane_;
  const size_t window_bytes_;
  TicketTable* const tickets_;
  const Hooks hooks_;

  mutable Mutex mu_;
  CondVar progress_;                        // the window moved, a call ended, or all failed
  std::shared_ptr<Connection> connection_;  // null: down
  // The server at the other end, as of the last connection.
  struct Peer {
    std::string address;
    uint64_t instance = 0;
  };
  Peer peer_;
  std::atomic<bool> suspended_{false};  // written under mu_
  Status failed_;
  bool left_ GUARDED_BY(mu_) = false;  // SetLeft was called
  struct Closing {
    bool closed = false;
    int threads = 0;  // that end a connection
  };
  Closing closing_;
  std::vector<Pending> slots_;
  // The unanswered requests: sequence numbers [first, next), and their row values.
  struct Window {
    uint64_t first = 1;
    uint64_t next = 1;
    size_t bytes = 0;
    size_t in_flight() const { return static_cast<size_t>(next - first); }
  };
  Window window_;
  struct LastMarker {
    uint64_t seq = 0;
    int64_t checkpoint = -1;
  };
  LastMarker last_marker_;
  uint64_t next_call_ = 1;
  std::map<uint64_t, std::shared_ptr<Call>> calls_;
  Counters counters_;
  KeyEncoder keys_;  // of the present connection
  // Memory that is kept from request to request.
  struct Buffers {
    std::string front;
    // For coded rows: as much as was ever under way, not as much as there are slots.
    std::vector<std::string> spare;
  };
  Buffers buffers_;
};

}  // namespace shoal::ps
