// The backup's end of replication: applies the log of its primary to this server's lanes
// (docs/design/replication.md describes the whole protocol).
//
// Part of ServerCore. Frames are applied under the lock of their lane; the other functions take the
// locks that they need and must be called without one.
#pragma once

#include <atomic>
#include <memory>

#include "ps/lane/control_request.h"
#include "ps/lane/server_context.h"
#include "ps/replication/replicator.h"

namespace shoal::ps {

class BackupReceiver {
 public:
  // `handler` gets the control requests of the log. All that is pointed to outlives it.
  BackupReceiver(ServerContext* context, const Replicator::Services& services,
                 ControlHandler* handler)
      : context_(context), services_(services), handler_(handler) {}

  // The primary connects to a lane; replaces its earlier connection. Returns the position of the
  // last entry that the lane has. Unavailable: this server is no backup.
  Result<uint64_t> Connect(const Hello& hello, const std::shared_ptr<ServerConnection>& peer);
  // One entry, applied unless the lane has it already; confirmed at once. An error breaks the
  // connection: the entry is malformed, or is not the next one.
  Status OnFrame(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                 const FrameHeader& head, std::string_view body);

  // Whether all rows that the primary had are in all lanes.
  bool IsComplete();
  bool has_primary_connection();
  // When the primary was last heard of. Any thread.
  TimePoint last_entry_at() const { return TimePoint(Duration(last_entry_at_)); }
  // The primary has left and owned nothing: nothing is to be taken over. Any thread.
  bool primary_is_empty() const { return primary_is_empty_; }
  // The primary is dead: ends its connections and brings every lane to a state that it can serve.
  // The caller sets the role before and after.
  void TakeOver();

 private:
  Status Apply(uint32_t lane, const Entry& entry);
  Status ApplyRows(uint32_t lane, const Entry& entry);
  Status ApplyJoin(uint32_t lane, const Entry& entry);
  Status ApplyControl(uint32_t lane, const Entry& entry);
  Status ApplySession(Lane* lane, const Entry& entry);
  Status ApplyState(uint32_t lane, const Entry& entry);
  Status ApplyServer(std::string_view content);

  ServerContext* const context_;
  const Replicator::Services services_;
  ControlHandler* const handler_;
  std::atomic<int64_t> last_entry_at_{0};
  std::atomic<bool> primary_is_empty_{false};
};

}  // namespace shoal::ps
