// What is behind Client and Admin: the channels to all lanes, the split of requests over them, and
// the thread that dials again.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "ps/client/append_only_list.h"
#include "ps/client/channel.h"
#include "ps/client/client.h"
#include "ps/client/marker_gate.h"
#include "ps/client/redirector.h"
#include "ps/partition.h"
#include "ps/shard_map.h"

namespace shoal::ps {

class ClientCore {
 public:
  ClientCore(ClientOptions options, Members* members);
  ~ClientCore();

  Status Connect();

  const ClientOptions& options() const { return options_; }
  MarkerGate& gate() { return gate_; }
  const AppendOnlyList<std::unique_ptr<Channel>>& channels() const { return channels_; }
  Channel& leader() { return channel(kLeader); }

  // --- Servers, which come and go: client_servers.cc. See docs/design/partition.md ---
  // Those whose index is below it may be known, or not.
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
  // Of all servers that are connected; their first lanes; those of servers that own rows, and of
  // the leader.
  std::vector<Channel*> Connected() const;
  std::vector<Channel*> FirstLanes() const;
  std::vector<Channel*> OfOwners();
  // Makes this client one that also stays connected to servers without rows, as long as Members
  // names them, and connects to all that it names and that can be reached.
  void ConnectNamed(TimePoint deadline);
  // Lets go of a server without rows, if nothing is unanswered.
  void LetGo(int server);
  // All that is under way and to come fails.
  void Cancel();
  int64_t restarts() const { return restarts_; }
  int64_t restored_checkpoint() const { return restored_; }

  Result<TableRef> CreateTable(const TableSpec& spec, TimePoint deadline);
  struct RowRequest {
    FrameType type;
    const TableRef* table;
    std::span<const Key> keys;
    ConstRows deltas;
    Rows out;
    DoneCallback done;
    Rows sent;                  // where to put what deltas came to be on the wire
    std::string_view argument;  // a call's, as it travels
  };
  Result<Ticket> Issue(RowRequest request);
  Status Wait(Ticket ticket, TimePoint deadline);
  bool Done(Ticket ticket) const { return tickets_.Done(ticket); }
  Status Flush(TimePoint deadline);
  Status PullRange(const TableRef& table, uint64_t first, uint64_t count, Rows out,
                   TimePoint deadline);

  // A control request to one channel, waited for.
  Result<std::string> SendRequest(Channel* channel, FrameType type, uint64_t argument,
                                  std::string body, TimePoint deadline);
  // The same request to all channels at once; the first error, once all are done.
  Status SendRequestToAll(FrameType type, uint64_t argument, const std::string& body,
                          TimePoint deadline);

  // For Redirector, while the gate's routes are closed, but for LearnShards and known_shards.
  // What a server says: *news if it knew something.
  Status LearnShards(std::string_view bytes, bool* news);
  ShardMap known_shards();
  // Goes by what was learnt.
  void UseShards();
  // Until what has been sent is answered, or refused.
  void AwaitChannels();
  size_t ChannelOfRow(uint32_t table, Key key);
  int ServerOf(const TableRef& table, Key key);
  TicketTable& tickets() { return tickets_; }
  // As SendRequestToAll, of each server's first lane.
  Status SendRequestToFirstLanes(FrameType type, const std::string& body, TimePoint deadline);

  Status PutBlob(std::string_view name, std::string_view bytes, TimePoint deadline);
  Result<std::string> GetBlob(std::string_view name, TimePoint deadline);
  Status Clock(uint64_t n, TimePoint deadline);
  Status Barrier(const std::string& name, TimePoint deadline);
  Status SetProgress(std::string bytes);
  Status Leave(TimePoint deadline);

 private:
  static constexpr Duration kDialTimeout = std::chrono::seconds(5);
  static constexpr Duration kQuickDial = std::chrono::milliseconds(500);  // there are others to try

  Result<OpenedConnection> DialOnce(int server, uint32_t lane, uint64_t first_seq,
                                    std::string* address, Duration timeout);
  Result<OpenedConnection> DialAt(int server, uint32_t lane, uint64_t first_seq,
                                  const std::string& address, Duration timeout);
  Result<OpenedConnection> DialUntil(int server, uint32_t lane, uint64_t first_seq,
                                     TimePoint deadline, std::string* address);
  // Waits for so long unless the client is destroyed meanwhile; whether it is.
  bool WaitForStop(Duration time);
  Status ConnectAll();
  Status AwaitMembers(TimePoint deadline);
  Status CheckWelcome(int server, const Welcome& welcome) const;
  Status ConnectServer(int server, TimePoint deadline, Welcome* welcome = nullptr);
  Status ConnectLane(int server, uint32_t lane, Channel* channel, TimePoint deadline,
                     Welcome* welcome);
  void OnServerConnected(int server);
  Status ConnectOwners(TimePoint deadline);
  void CloseUnneededChannels();
  bool IsUnneeded(int server);
  int64_t CheckpointUnderWay();
  std::unique_ptr<Channel> MakeChannel(int server, uint32_t lane);

  // channel → parts
  Status CheckRequest(const RowRequest& request) const;
  void IssueOverOne(const RowRequest& request, uint32_t ticket, TimePoint deadline, Status* bad);
  void IssueOverMany(const RowRequest& request, uint32_t ticket, TimePoint deadline, Status* bad);
  size_t ChannelOf(const TableRef& table, Key key) const;

  void PollFor(Ticket ticket, TimePoint deadline);
  void Abandon(Ticket ticket);
  Status SendRequestTo(const std::vector<Channel*>& whom, const FrameHeader& head,
                       const std::string& body, TimePoint deadline);
  // Takes this worker out of the barrier that it entered with request `id`. OK: it had been let
  // through. DeadlineExceeded, naming the late workers: it is out, or will be before it enters
  // again.
  Status LeaveBarrier(const std::string& name, uint64_t id, TimePoint deadline);
  Status WithLateWorkers(const Status& status, FrameType type, uint64_t argument, std::string body);
  Status PutBlobOnce(std::string_view name, std::string_view bytes, TimePoint deadline);
  Result<std::string> GetBlobOnce(std::string_view name, TimePoint deadline);

  // The dialling thread.
  void OnLost(Channel* channel);
  void Redial();
  // Lets go of connections to where Members says that the server is not any more.
  void DisconnectOldAddresses();
  bool Restore(Channel* channel, TimePoint lost_at);
  void NoteInstance(int server, const Welcome& welcome);
  // All that is under way and to come fails with `why`, on every server.
  void FailForGood(const Status& why);
  static Status RowsAreLost(int server);
  std::vector<std::string> TableSpecs();

  // See docs/design/checkpoint.md, "Exactness".
  // The checkpoint whose markers go out or are unanswered.
  struct Settling {
    int64_t checkpoint = -1;
    size_t markers = 0;  // that are unanswered; and one until all have gone out
    bool late = false;   // something was refused that had been sent before a marker
  };
  void InjectMarkers(int64_t checkpoint);
  void MarkChannel(Channel* channel, int64_t checkpoint, const std::string& progress);
  void OnMarkerAnswered(int64_t checkpoint, bool failed);
  void OnMoved(Redirect redirect);
  void SetSettling(const Settling& now);

  const ClientOptions options_;
  Members* const members_;
  const uint64_t session_;
  std::unique_ptr<Transport> tcp_;
  std::unique_ptr<Transport> inproc_;
  TicketTable tickets_;
  MarkerGate gate_;

  struct ServerSlot {
    std::atomic<uint64_t> where{0};  // its first channel << 32 | how many lanes; 0: never connected
    std::atomic<bool> connected{false};
    std::atomic<size_t> place{SIZE_MAX};  // at whose address it was found last
  };
  // Grow under grow_mu_.
  AppendOnlyList<std::unique_ptr<Channel>> channels_;
  AppendOnlyList<ServerSlot> server_slots_;  // by server
  std::mutex grow_mu_;                       // before any other
  std::atomic<bool> keeps_named_{false};
  // Constant after Connect.
  uint32_t initial_servers_ = 0;  // servers that the job began with
  uint32_t shards_ = 0;
  Partition partition_;
  std::vector<size_t> channel_of_shard_;  // changes while routes are closed
  int64_t restored_ = -1;

  std::atomic<uint64_t> clock_{0};
  std::atomic<int64_t> restarts_{0};
  std::mutex barriers_mu_;
  // Requests whose barrier may not know yet that this worker has given it up, by name; guarded by
  // barriers_mu_.
  std::map<std::string, uint64_t> left_barriers_;
  std::mutex progress_mu_;
  std::string progress_;      // guarded by progress_mu_
  std::mutex markers_mu_;     // before the channels'
  int64_t last_marked_ = -1;  // guarded by markers_mu_
  std::mutex settling_mu_;    // the last one
  Settling settling_;         // guarded by settling_mu_

  std::mutex mu_;
  std::condition_variable lost_cv_;
  std::map<Channel*, TimePoint> lost_;           // guarded by mu_: since when
  std::map<uint32_t, std::string> table_specs_;  // guarded by mu_
  std::map<uint32_t, KeySpace> key_spaces_;      // guarded by mu_, by table
  ShardMap known_;                               // guarded by mu_: the owners of shards
  Redirector redirector_{this};
  std::map<int, uint64_t> instances_;  // guarded by mu_, by server
  Status failed_;                      // guarded by mu_: no server is connected any more
  bool stop_ = false;                  // guarded by mu_
  std::thread dialer_;
};

}  // namespace shoal::ps
