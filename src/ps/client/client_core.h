// The implementation of Client and Admin: owns the channels to all lanes and the parts that use
// them (row_issuer.h, worker_client.h, marker_sender.h, redirector.h, reconnector.h,
// shard_router.h).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "ps/client/append_only_list.h"
#include "ps/client/channel.h"
#include "ps/client/client.h"
#include "ps/client/control_calls.h"
#include "ps/client/marker_gate.h"
#include "ps/client/marker_sender.h"
#include "ps/client/reconnector.h"
#include "ps/client/redirector.h"
#include "ps/client/row_issuer.h"
#include "ps/client/server_dialer.h"
#include "ps/client/shard_router.h"
#include "ps/client/worker_client.h"

namespace shoal::ps {

// The error of a server that came back without rows that it had.
Status RowsAreLost(int server);

// Lifecycle: construction, Connect, use, destruction; Cancel ends all waits earlier. Thread-safe
// after Connect. Parts with a thread of their own: Reconnector, Redirector, and the transports.
//
// Lock order: grow_mu_, MarkerSender, channels, then mu_ and the parts' own mutexes.
class ClientCore {
 public:
  ClientCore(ClientOptions options, Members* members);
  ~ClientCore();

  Status Connect();

  const ClientOptions& options() const { return options_; }
  MarkerGate& gate() { return gate_; }
  const AppendOnlyList<std::unique_ptr<Channel>>& channels() const { return channels_; }
  Channel& leader() { return channel(kLeader); }

  // --- Servers (client_servers.cc), which join and leave: see docs/design/partition.md ---
  // Servers below this index may be connected or not.
  int servers() const { return static_cast<int>(server_slots_.size()); }
  bool connected(int server) const {
    return server >= 0 && server < servers() &&
           server_slots_[static_cast<size_t>(server)].connected;
  }
  // 0: never connected.
  uint32_t lanes(int server) const {
    return static_cast<uint32_t>(server_slots_[static_cast<size_t>(server)].where);
  }
  // Of a server that has been connected once.
  Channel& channel(int server, uint32_t lane = 0) {
    return *channels_[(server_slots_[static_cast<size_t>(server)].where >> 32) + lane];
  }
  // Of all servers that are connected; their first lanes.
  std::vector<Channel*> Connected() const;
  std::vector<Channel*> FirstLanes() const;
  // Connects to all servers that Members names and that can be reached; from now on this client
  // also stays connected to named servers without rows.
  void ConnectNamed(TimePoint deadline);
  // Suspends the channels to a server without rows, if nothing is unanswered.
  void LetGo(int server);
  // All that is under way and to come fails.
  void Cancel();
  int64_t restarts() const { return restarts_; }
  int64_t restored_checkpoint() const { return restored_; }

  Result<TableRef> CreateTable(const TableSpec& spec, TimePoint deadline);
  RowIssuer& rows() { return rows_; }
  WorkerClient& worker() { return worker_; }
  Redirector& redirector() { return redirector_; }

  ShardRouter& router() { return router_; }
  TicketTable& tickets() { return tickets_; }
  // Connects to owners that were learnt, and routes requests to them. For Redirector, while the
  // gate's routes are closed.
  void UseShards();

  // --- For Reconnector ---
  ServerDialer& dialer() { return dialer_; }
  MemberView CurrentMembers() { return members_->Current(); }
  // FailedPrecondition: the server is not the one that this job has at this index.
  Status CheckWelcome(int server, const Welcome& welcome) const;
  // A server of which this client needs nothing: it owns no rows, and nothing is unanswered.
  bool IsUnneeded(int server);
  // Notices a restart of the server, and fails for good if it came back without its rows and the
  // options say so.
  void NoteInstance(int server, const Welcome& welcome);
  // Encoded specs of all tables, which a restarted server has to create again.
  std::vector<std::string> TableSpecs();

 private:
  Result<OpenedConnection> DialUntil(int server, uint32_t lane, uint64_t first_seq,
                                     TimePoint deadline, std::string* address);
  Status ConnectAll();
  Status ConnectServer(int server, TimePoint deadline, Welcome* welcome = nullptr);
  Status ConnectLane(int server, uint32_t lane, Channel* channel, TimePoint deadline,
                     Welcome* welcome);
  void OnServerConnected(int server);
  Status ConnectOwners(TimePoint deadline);
  void CloseUnneededChannels();
  std::unique_ptr<Channel> MakeChannel(int server, uint32_t lane);

  // All that is under way and to come fails with `why`, on every server.
  void FailForGood(const Status& why);

  const ClientOptions options_;
  Members* const members_;
  ServerDialer dialer_;
  TicketTable tickets_;
  MarkerGate gate_;

  struct ServerSlot {
    std::atomic<uint64_t> where{0};  // its first channel << 32 | how many lanes; 0: never connected
    std::atomic<bool> connected{false};
  };
  // Grow under grow_mu_.
  AppendOnlyList<std::unique_ptr<Channel>> channels_;
  AppendOnlyList<ServerSlot> server_slots_;  // by server
  Mutex grow_mu_;                            // before any other
  std::atomic<bool> keeps_named_{false};
  // Constant after Connect.
  uint32_t initial_servers_ = 0;  // servers that the job began with
  uint32_t shards_ = 0;
  ShardRouter router_;
  int64_t restored_ = -1;

  std::atomic<int64_t> restarts_{0};
  Mutex mu_;
  std::map<uint32_t, std::string> table_specs_ GUARDED_BY(mu_);
  Redirector redirector_{this};
  MarkerSender markers_{this};
  WorkerClient worker_{this};
  RowIssuer rows_{this};
  std::map<int, uint64_t> instances_ GUARDED_BY(mu_);  // by server
  Status failed_ GUARDED_BY(mu_);                      // no server is connected any more
  Reconnector reconnector_{this};
};

}  // namespace shoal::ps
