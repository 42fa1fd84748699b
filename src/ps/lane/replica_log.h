// The log of one lane for its backup: the entries that the backup has not confirmed, and the
// answers that wait for a confirmation (docs/design/replication.md).
//
// Everything that changes a lane is appended in the order in which it was applied; the connection
// carries it to the backup, which applies it in the same order and confirms it. While replication
// is synchronous, an answer leaves only when the backup has everything that the answer could have
// seen. Guarded by the lane's lock, except for the ends of ReplicaConnection.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ps/transport/server_connection.h"
#include "ps/transport/transport.h"

namespace shoal::ps {

// The connection to a backup's lane. It is a ServerConnection so that releasing the lane's lock
// delivers the entries that were queued (in-process connections deliver in FlushReplies).
class ReplicaConnection final : public ServerConnection, public ConnectionHandler {
 public:
  // Called without locks, by the thread that receives.
  struct Events {
    // The backup has all entries up to `position`.
    std::function<void(const ReplicaConnection* from, uint64_t position)> confirmed;
    // Called once, last. It may drop the last reference to `from`.
    std::function<void(const ReplicaConnection* from)> lost;
  };
  ReplicaConnection(std::unique_ptr<Connection> connection, Events events)
      : connection_(std::move(connection)), events_(std::move(events)) {}
  // Closes. Not under the lane's lock: it waits for a handler that may want it.
  ~ReplicaConnection() override { connection_->Close(); }

  void Start() { connection_->Start(this); }
  // Under the lane's lock.
  void Send(uint64_t position, std::string_view entry);

  // ServerConnection.
  void Reply(const FrameHeader&, std::string_view) override {}
  void CloseAfterFlush(const Status&) override {}
  void FlushReplies() override { connection_->FlushReplies(); }
  // ConnectionHandler.
  void OnFrame(const FrameHeader& head, std::string_view body) override;
  void OnClosed(const Status& why) override;

 private:
  const std::unique_ptr<Connection> connection_;
  const Events events_;
};

// An answer that waits.
struct HeldAnswer {
  uint64_t position = 0;  // goes out once this much is confirmed
  std::weak_ptr<ServerConnection> peer;
  FrameHeader head;
  std::string body;
};

class ReplicaLog {
 public:
  // With more unconfirmed and held bytes nothing more is read from clients.
  static constexpr size_t kMaxBytes = 32u << 20;

  // Whether entries are wanted at all.
  bool on() const { return on_; }
  bool paired() const { return paired_; }
  bool down() const { return connection_ == nullptr; }
  bool full() const { return bytes_ > kMaxBytes; }
  size_t bytes() const { return bytes_; }
  uint64_t end() const { return end_; }
  uint64_t confirmed() const { return confirmed_; }
  const std::shared_ptr<ReplicaConnection>& connection() const { return connection_; }

  // Whether an answer given now must wait.
  bool holds() const {
    return paired_ && (connection_ == nullptr || confirmed_ != end_ || !held_.empty());
  }

  // Starts a log for a new backup, which has nothing yet.
  void Open(std::shared_ptr<ReplicaConnection> connection);
  // The same backup over a new connection; sends the entries after `confirmed` again.
  void Resume(std::shared_ptr<ReplicaConnection> connection, uint64_t confirmed);
  // Replication is synchronous from now on: answers wait.
  void Pair() { paired_ = true; }
  // The connection is gone. Answers wait until Resume or Close.
  void Detach(const ReplicaConnection* connection);
  // There is no backup any more: drops the log.
  void Close();

  void Append(std::string entry);
  void Hold(const std::shared_ptr<ServerConnection>& peer, const FrameHeader& head,
            std::string_view body);
  void Confirm(uint64_t position);
  // Answers that may go out now, in order.
  std::vector<HeldAnswer> TakeReady();

 private:
  bool on_ = false;
  bool paired_ = false;
  std::shared_ptr<ReplicaConnection> connection_;  // null: down
  uint64_t end_ = 0;                               // position of the last entry
  uint64_t confirmed_ = 0;
  std::deque<std::string> entries_;  // (confirmed_, end_]
  std::deque<HeldAnswer> held_;
  size_t bytes_ = 0;  // of both
};

}  // namespace shoal::ps
