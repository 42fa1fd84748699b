// Which servers' rows a process has, as their primary or as a backup, and what it does when another
// one dies (docs/design/replication.md). One a Server with copies.
//
// A *seat* is the rows of one server index, wherever they are. Each process begins with its own;
// its backup is a neighbour. Who is dead is not guessed: a later life of an index proves that its
// earlier ones are over, or Members no longer names the address. Locks: mu_, then lanes'. Nothing
// is dialled under mu_, for the other end takes its own.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ps/members.h"
#include "ps/server_core.h"

namespace shoal::ps {

class ReplicaHost : public std::enable_shared_from_this<ReplicaHost> {
 public:
  // `own` listens for all seats and serves its own index once nobody else is found to.
  static std::shared_ptr<ReplicaHost> Make(std::shared_ptr<ServerCore> own);
  ~ReplicaHost();

  // `address`: under which Members will name it.
  void Start(std::string address);
  // At once, as a crash would.
  void Stop();

  // A newcomer's core; null: the one that listens. Unavailable: not here, or not yet.
  Result<std::shared_ptr<ServerCore>> Route(const Hello& hello);
  // A later life of hello.from has begun. True if its rows are here.
  bool Claim(const Hello& hello);

  // Takes no new copies and begins none.
  void SetLeaving();

  // The cores that serve, but for the one that listens.
  std::vector<std::shared_ptr<ServerCore>> Others();
  std::vector<int> serves();
  std::vector<int> keeps();
  bool copied();
  void ReportDead(int worker);
  void Wake();

 private:
  // The backup of a seat, as its primary sees it. The manager's thread's, but for `dead`.
  struct Backup {
    int server = -1;
    int64_t life = 0;
    std::string address;
    uint64_t sync = 0;  // names this copy
    std::vector<std::shared_ptr<ReplicaStream>> streams;
    std::vector<ServerCore::RowCursor> cursors;
    std::vector<uint64_t> goal;  // positions that must be confirmed for the next step
    bool pairing = false;
    bool paired = false;
    bool dead = false;  // guarded by mu_
  };
  struct Seat {
    std::shared_ptr<ServerCore> core;
    bool primary = false;
    uint64_t epoch = 1;
    // A copy's primary.
    int from = -1;
    int64_t from_life = 0;
    std::string from_address;
    uint64_t sync = 0;
    // A primary's.
    std::shared_ptr<Backup> backup;
    bool open = false;  // clients may join: it had a backup once, or there is nobody to be one
  };

  explicit ReplicaHost(std::shared_ptr<ServerCore> own);
  void Run();
  void Round();
  bool Fenced(const MemberView& view);
  // Somebody else is this server now: answers nobody any more.
  void Retire(const std::string& why);
  void ClaimOwn(const MemberView& view);
  bool LearnFrom(std::unique_ptr<Link> link);
  void ServeOwn();
  void WatchPrimaries(const MemberView& view);
  bool PrimaryIsGone(const Seat& seat, const MemberView& view) const;
  bool Succeed(int index, Seat* seat);
  void TendBackup(int index, const MemberView& view);
  void DropBackup(int index);
  bool BackupIsDead(const Backup& backup, const MemberView& view);
  std::vector<int> Candidates(int index, const MemberView& view) const;
  void FindBackup(int index, const MemberView& view);
  std::shared_ptr<Backup> Connect(int index, int to, const std::string& address);
  void Advance(int index, Backup* backup);
  bool Confirmed(ServerCore* core, const Backup& backup) const;
  Status Reconnect(int index, Backup* backup);
  Result<std::shared_ptr<ServerCore>> RouteCopy(const Hello& hello);
  Result<Dialled> Dial(const std::string& address, const Hello& hello);
  Hello HelloOf(HelloKind kind, int server, uint64_t session) const;
  std::vector<int> Primaries();
  Seat* Find(int index);
  std::shared_ptr<Backup> BackupOf(int index);
  std::shared_ptr<ServerCore> CoreOf(int index);

  const std::shared_ptr<ServerCore> own_;
  const ServerOptions options_;
  std::unique_ptr<Transport> tcp_;
  std::unique_ptr<Transport> inproc_;
  std::string address_;
  bool seen_ = false;  // Members has named our address
  bool busy_ = false;  // something is under way: look again soon
  TimePoint next_claim_{};
  std::set<int> told_;  // servers that know that this life began
  TimePoint next_ping_{};

  std::mutex wake_mu_;  // a leaf: taken under any other
  std::condition_variable wake_;
  bool woken_ = false;  // guarded by wake_mu_

  std::mutex mu_;
  bool stop_ = false;             // guarded by mu_
  bool fenced_ = false;           // guarded by mu_
  bool leaving_ = false;          // guarded by mu_
  std::map<int, Seat> seats_;     // guarded by mu_
  std::map<int, int64_t> lives_;  // guarded by mu_: earlier ones of an index are over
  std::thread thread_;
};

}  // namespace shoal::ps
