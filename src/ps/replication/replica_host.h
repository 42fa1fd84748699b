// The replica groups that one process takes part in, and its reaction when another server dies
// (docs/design/replication.md). One per Server with replicas.
//
// A replica group holds the rows of one server index, on a primary and a backup. Each process
// starts with the group of its own index as primary; its backup is a neighbour. A server is
// declared dead only when a later incarnation of its index registers, or Members no longer names
// its address.
//
// Thread rules: a manager thread drives synchronisation and takeover; Route and
// AnswerRecoveryLookup are called by connections' threads. Lock order: mu_, then lanes. No
// connection is dialled under mu_, because the other process takes its own mu_.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "ps/members.h"
#include "ps/server/server_core.h"

namespace shoal::ps {

class ReplicaHost : public std::enable_shared_from_this<ReplicaHost> {
 public:
  // `own` listens for all groups. It serves its own index once no other process is found to.
  static std::shared_ptr<ReplicaHost> Make(std::shared_ptr<ServerCore> own);
  ~ReplicaHost();

  // Starts the manager thread. `address`: the one that Members will name.
  void Start(std::string address);
  // Stops all groups at once, as a crash would. Idempotent.
  void Stop();

  // A newcomer's core; null: the one that listens. Unavailable: not here, or not yet.
  Result<std::shared_ptr<ServerCore>> Route(const Hello& hello);
  // A later incarnation of hello.from has begun: its earlier ones are dead. True if its rows are
  // here.
  bool AnswerRecoveryLookup(const Hello& hello);

  // Accepts no new backups and starts none.
  void SetLeaving();

  // The cores that serve clients, except the listening one.
  std::vector<std::shared_ptr<ServerCore>> OtherCores();
  std::vector<int> primary_of();
  std::vector<int> backup_of();
  bool fully_replicated();
  void ReportDead(int worker);
  void Wake();

 private:
  // The backup of a group, as its primary sees it. The manager's thread's, but for `dead`.
  struct Backup {
    int server = -1;
    int64_t incarnation = 0;
    std::string address;
    uint64_t copy_id = 0;  // names this copy
    std::vector<std::shared_ptr<ReplicaConnection>> connections;
    std::vector<RowCursor> cursors;
    std::vector<uint64_t> must_confirm;  // positions that must be confirmed for the next step
    bool enabling_sync = false;
    bool in_sync = false;
    bool dead = false;  // guarded by mu_
  };
  struct ReplicaGroup {
    std::shared_ptr<ServerCore> core;
    bool primary = false;
    uint64_t epoch = 1;
    // A copy's primary.
    int from = -1;
    int64_t from_incarnation = 0;
    std::string from_address;
    uint64_t copy_id = 0;
    // A primary's.
    std::shared_ptr<Backup> backup;
    bool open = false;  // clients may join: it had a backup once, or no process can be one
  };

  explicit ReplicaHost(std::shared_ptr<ServerCore> own);
  void Run();
  void RunOnce();
  bool Fenced(const MemberView& view);
  // Another process is this server now: this one answers no request any more.
  void Retire(const std::string& why);
  void RecoverOwnGroup(const MemberView& view);
  bool LearnShardsFrom(std::unique_ptr<Connection> connection);
  void StartOwnGroup();
  void WatchPrimaries(const MemberView& view);
  bool PrimaryIsGone(const ReplicaGroup& group, const MemberView& view) const;
  bool TakeOver(int index, ReplicaGroup* group);
  void MaintainBackup(int index, const MemberView& view);
  void DropBackup(int index);
  bool BackupIsDead(const Backup& backup, const MemberView& view);
  std::vector<int> Candidates(int index, const MemberView& view) const;
  void ChooseBackup(int index, const MemberView& view);
  // A connection to the backup that reports to the core's Replicator and wakes the manager.
  std::shared_ptr<ReplicaConnection> MakeConnection(const std::weak_ptr<ServerCore>& core,
                                                    uint32_t lane,
                                                    std::unique_ptr<Connection> connection);
  std::shared_ptr<Backup> Connect(int index, int to, const std::string& address);
  void AdvanceSync(int index, Backup* backup);
  bool Confirmed(ServerCore* core, const Backup& backup) const;
  Status Reconnect(int index, Backup* backup);
  Result<std::shared_ptr<ServerCore>> RouteReplica(const Hello& hello);
  Result<OpenedConnection> Dial(const std::string& address, const Hello& hello);
  std::vector<int> PrimaryGroups();
  ReplicaGroup* Find(int index) REQUIRES(mu_);
  std::shared_ptr<Backup> BackupOf(int index);
  std::shared_ptr<ServerCore> CoreOf(int index);

  const std::shared_ptr<ServerCore> own_;
  const ServerOptions options_;
  std::unique_ptr<Transport> tcp_;
  std::unique_ptr<Transport> inproc_;
  std::string address_;
  bool named_by_members_ = false;  // Members has named our address
  bool busy_ = false;              // something is under way: look again soon
  TimePoint next_lookup_{};
  std::set<int> notified_;  // servers that know that this incarnation began
  TimePoint next_ping_{};

  Mutex wake_mu_;  // a leaf: taken under any other
  CondVar wake_;
  bool woken_ GUARDED_BY(wake_mu_) = false;

  Mutex mu_;
  bool stop_ GUARDED_BY(mu_) = false;
  bool fenced_ GUARDED_BY(mu_) = false;
  bool leaving_ GUARDED_BY(mu_) = false;
  std::map<int, ReplicaGroup> groups_ GUARDED_BY(mu_);
  std::map<int, int64_t> incarnations_ GUARDED_BY(mu_);  // earlier ones of an index are over
  std::thread thread_;
};

}  // namespace shoal::ps
