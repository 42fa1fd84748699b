#include "ps/replication/replica_host.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/id.h"
#include "base/log.h"
#include "base/mutex.h"
#include "ps/server/shard_connection.h"

namespace shoal::ps {
namespace {

constexpr Duration kDialTimeout = std::chrono::milliseconds(500);
constexpr Duration kBusyInterval = std::chrono::milliseconds(2);
constexpr Duration kIdleInterval = std::chrono::milliseconds(20);
constexpr Duration kLookupEvery = std::chrono::milliseconds(20);
// A primary that hears nothing of its backup for this long answers no client, because the ping that
// it logged is not confirmed. A backup takes over after twice this time at the earliest, unless the
// connection has ended.
constexpr Duration kPingEvery = std::chrono::milliseconds(250);
constexpr int kEntriesPerRun = 32;
// After a checkpoint could not be read.
constexpr Duration kRestoreEvery = std::chrono::seconds(1);

// Whether restoring may work at another time: what is damaged, missing, or of a later version of
// the format, stays so.
bool IsTransient(const Status& restored) {
  return !restored.ok() && restored.code() != Code::kDataLoss &&
         restored.code() != Code::kNotFound && restored.code() != Code::kUnimplemented;
}

Hello MakeHello(const ServerOptions& options, HelloKind kind, int server, uint64_t session) {
  Hello hello;
  hello.kind = kind;
  hello.server = server;
  hello.from = options.index;
  hello.incarnation = options.incarnation;
  hello.session = session;
  return hello;
}

}  // namespace

std::shared_ptr<ReplicaHost> ReplicaHost::Make(std::shared_ptr<ServerCore> own) {
  std::shared_ptr<ReplicaHost> host(new ReplicaHost(std::move(own)));
  host->own_->SetRole(ServerRole::kStandby);
  host->own_->SetHost(host);
  return host;
}

ReplicaHost::ReplicaHost(std::shared_ptr<ServerCore> own)
    : own_(std::move(own)),
      options_(own_->options()),
      tcp_(MakeTcpTransport(options_.token, options_.shared_memory)) {
  if (options_.hub != nullptr) inproc_ = MakeInProcessTransport(options_.hub, options_.token);
}

ReplicaHost::~ReplicaHost() { Stop(); }

void ReplicaHost::Start(std::string address) {
  address_ = std::move(address);
  thread_ = std::thread([this] { Run(); });
}

void ReplicaHost::Stop() {
  std::map<int, ReplicaGroup> groups;
  {
    const MutexLock lock(mu_);
    stop_ = true;
    groups = groups_;
  }
  Wake();
  for (auto& [index, group] : groups) group.core->Stop();
  if (thread_.joinable()) thread_.join();
  const MutexLock lock(mu_);
  groups_.clear();
}

void ReplicaHost::SetLeaving() {
  const MutexLock lock(mu_);
  leaving_ = true;
}

void ReplicaHost::Wake() {
  const MutexLock lock(wake_mu_);
  woken_ = true;
  wake_.notify_all();
}

ReplicaHost::ReplicaGroup* ReplicaHost::Find(int index) {
  const auto found = groups_.find(index);
  return found == groups_.end() ? nullptr : &found->second;
}

std::shared_ptr<ReplicaHost::Backup> ReplicaHost::BackupOf(int index) {
  const MutexLock lock(mu_);
  const ReplicaGroup* group = Find(index);
  return group == nullptr ? nullptr : group->backup;
}

std::shared_ptr<ServerCore> ReplicaHost::CoreOf(int index) {
  const MutexLock lock(mu_);
  const ReplicaGroup* group = Find(index);
  return group == nullptr ? nullptr : group->core;
}

std::vector<int> ReplicaHost::PrimaryGroups() {
  const MutexLock lock(mu_);
  std::vector<int> indices;
  for (const auto& [index, group] : groups_) {
    if (group.primary) indices.push_back(index);
  }
  return indices;
}

std::vector<int> ReplicaHost::primary_of() { return PrimaryGroups(); }

std::vector<std::shared_ptr<ServerCore>> ReplicaHost::OtherCores() {
  const MutexLock lock(mu_);
  std::vector<std::shared_ptr<ServerCore>> cores;
  for (const auto& [index, group] : groups_) {
    if (group.primary && group.core != own_) cores.push_back(group.core);
  }
  return cores;
}

std::vector<int> ReplicaHost::backup_of() {
  const MutexLock lock(mu_);
  std::vector<int> indices;
  for (const auto& [index, group] : groups_) {
    if (!group.primary && group.core->backup().IsComplete()) indices.push_back(index);
  }
  return indices;
}

bool ReplicaHost::fully_replicated() {
  const MutexLock lock(mu_);
  bool some = false;
  for (const auto& [index, group] : groups_) {
    if (!group.primary) continue;
    if (group.backup == nullptr || group.backup->dead || !group.backup->in_sync) return false;
    some = true;
  }
  return some;
}

void ReplicaHost::ReportDead(int worker) {
  if (const auto core = CoreOf(0)) core->ReportDead(worker);
}

// --- What others ask ---

Result<std::shared_ptr<ServerCore>> ReplicaHost::Route(const Hello& hello) {
  if (hello.kind == HelloKind::kRecoveryLookup) return std::shared_ptr<ServerCore>();
  if (hello.kind == HelloKind::kCopy) return RouteReplica(hello);
  const MutexLock lock(mu_);
  const ReplicaGroup* group = Find(hello.server < 0 ? options_.index : hello.server);
  if (stop_ || fenced_ || group == nullptr || !group->primary) {
    return Unavailable(
        fmt::format("the rows of server {} are not at server {}", hello.server, options_.index));
  }
  if (!group->open) {
    return Unavailable(fmt::format("server {} waits for its backup", hello.server));
  }
  return group->core;
}

Result<std::shared_ptr<ServerCore>> ReplicaHost::RouteReplica(const Hello& hello) {
  if (hello.server < 0 || hello.server >= kMostServers || hello.from < 0 ||
      hello.from >= kMostServers || hello.from == options_.index || hello.session == 0) {
    return InvalidArgument("a replica of a server that does not exist");
  }
  const MemberView view = options_.members->Current();
  const MutexLock lock(mu_);
  if (stop_ || fenced_) return Unavailable("the server stops");
  if (leaving_ && hello.clock == 0) return Unavailable("the server leaves");
  if (hello.incarnation < incarnations_[hello.from]) {
    return Aborted(fmt::format("server {} has a later incarnation", hello.from));
  }
  ReplicaGroup* group = Find(hello.server);
  if (group != nullptr && !group->primary && group->copy_id == hello.session) return group->core;
  if (group != nullptr && (group->primary || group->core->backup().IsComplete()) &&
      hello.epoch <= group->epoch &&
      !(hello.epoch == group->epoch && !group->primary && group->from == hello.from)) {
    return Aborted(fmt::format("the rows of server {} are here under epoch {}, not {}",
                               hello.server, group->epoch, hello.epoch));
  }
  if (hello.clock != 0 || hello.lane != 0) return NotFound("that replica is not here");
  if (group != nullptr && group->primary) return Unavailable("its rows are still served here");
  ServerOptions options = options_;
  options.index = hello.server;
  ReplicaGroup replica;
  replica.core = ServerCore::MakeBackup(std::move(options));
  replica.core->SetHost(weak_from_this());
  replica.epoch = hello.epoch;
  replica.from = hello.from;
  replica.from_incarnation = hello.incarnation;
  replica.copy_id = hello.session;
  if (static_cast<size_t>(hello.from) < view.servers.size()) {
    replica.from_address = view.servers[static_cast<size_t>(hello.from)];
  }
  LogInfo("server {}: takes a copy of the rows of server {} from server {}", options_.index,
          hello.server, hello.from);
  groups_[hello.server] = replica;
  return replica.core;
}

bool ReplicaHost::AnswerRecoveryLookup(const Hello& hello) {
  const MutexLock lock(mu_);
  if (stop_ || fenced_ || hello.from < 0 || hello.from >= kMostServers) return false;
  int64_t& incarnation = incarnations_[hello.from];
  incarnation = std::max(incarnation, hello.incarnation);
  for (auto at = groups_.begin(); at != groups_.end();) {
    ReplicaGroup& group = at->second;
    const bool orphaned =
        !group.primary && group.from == hello.from && group.from_incarnation < incarnation;
    if (group.backup != nullptr && group.backup->server == hello.from &&
        group.backup->incarnation < incarnation) {
      group.backup->dead = true;
    }
    const int index = at->first;
    ++at;
    if (orphaned && !TakeOver(index, &group)) groups_.erase(index);
  }
  Wake();
  const ReplicaGroup* group = Find(hello.server);
  return group != nullptr && (group->primary || group->core->backup().IsComplete());
}

// Under mu_. False: the copy is not whole, and worth nothing.
bool ReplicaHost::TakeOver(int index, ReplicaGroup* group) {
  if (group->core->backup().primary_is_empty()) {
    LogInfo("server {}: server {} has left, and nothing with it", options_.index, index);
    return false;
  }
  if (!group->core->backup().IsComplete()) {
    LogWarning("server {}: server {} died before its copy of server {} was whole", options_.index,
               group->from, index);
    return false;
  }
  group->core->TakeOver();
  group->primary = group->open = true;
  ++group->epoch;
  LogWarning("server {}: took over the rows of server {}, whose primary died", options_.index,
             index);
  return true;
}

// --- The manager's thread ---

void ReplicaHost::Run() {
  for (;;) {
    {
      const MutexLock lock(mu_);
      if (stop_) return;
    }
    RunOnce();
    MutexLock lock(wake_mu_);
    wake_.wait_for(lock, busy_ ? kBusyInterval : kIdleInterval,
                   [this]() REQUIRES(wake_mu_) { return woken_; });
    woken_ = false;
  }
}

void ReplicaHost::RunOnce() {
  busy_ = false;
  {
    const MutexLock lock(mu_);
    if (fenced_) return;
  }
  const MemberView view = options_.members->Current();
  if (Fenced(view)) return Retire(fmt::format("Members no longer names {}", address_));
  RecoverOwnGroup(view);
  WatchPrimaries(view);
  const TimePoint now = RealClock::Get()->Now();
  const bool ping = now >= next_ping_;
  if (ping) next_ping_ = now + kPingEvery;
  for (const int index : PrimaryGroups()) {
    MaintainBackup(index, view);
    const auto core = CoreOf(index);
    if (core == nullptr || !ping) continue;
    core->replicator().Ping();
    core->Tick();
  }
}

// Members named our address once and does not any more: another process is this server now.
bool ReplicaHost::Fenced(const MemberView& view) {
  const auto self = static_cast<size_t>(options_.index);
  const bool named = self < view.servers.size() && view.servers[self] == address_;
  named_by_members_ = named_by_members_ || named;
  return named_by_members_ && !named;
}

void ReplicaHost::Retire(const std::string& why) {
  std::map<int, ReplicaGroup> groups;
  {
    const MutexLock lock(mu_);
    if (fenced_) return;
    fenced_ = true;
    groups = groups_;
  }
  LogError("server {}: {}: it answers no request any more", options_.index, why);
  for (auto& [index, group] : groups) group.core->Stop();
}

Result<OpenedConnection> ReplicaHost::Dial(const std::string& address, const Hello& hello) {
  const bool local = address.starts_with("inproc:");
  if (local && inproc_ == nullptr) return FailedPrecondition("this server has no in-process hub");
  return (local ? inproc_ : tcp_)->Dial(address, hello, kDialTimeout);
}

// Asks all other servers whether they have the rows of this index; if all deny it, they are made
// anew, or restored from the checkpoint. Asking tells them that our earlier lives are over: they
// are told too when the rows have been found meanwhile, because a server that has a replica of an
// earlier incarnation of ours would wait for it for ever.
void ReplicaHost::RecoverOwnGroup(const MemberView& view) {
  const TimePoint now = RealClock::Get()->Now();
  if (now < next_lookup_) return;
  next_lookup_ = now + kLookupEvery;
  if (view.servers.size() < static_cast<size_t>(options_.servers)) return;
  const bool here = CoreOf(options_.index) != nullptr;
  bool all = true, held = here;
  for (int other = 0; other < static_cast<int>(view.servers.size()); ++other) {
    const std::string& address = view.servers[static_cast<size_t>(other)];
    if (other == options_.index || address.empty() || (here && notified_.contains(other))) continue;
    auto dialled =
        Dial(address, MakeHello(options_, HelloKind::kRecoveryLookup, options_.index, 1));
    all = all && dialled.ok();
    if (!dialled.ok()) continue;
    held = held || dialled->welcome.last_seq != 0;
    notified_.insert(other);
    if (!here) all = LearnShardsFrom(std::move(dialled->connection)) && all;
  }
  if (all && !held) StartOwnGroup();
}

// Which shards have moved, before rows are restored.
bool ReplicaHost::LearnShardsFrom(std::unique_ptr<Connection> connection) {
  ShardConnection other(std::move(connection));
  other.Start();
  const auto reply =
      other.SendRequest(FrameType::kShards, {}, RealClock::Get()->Now() + kDialTimeout);
  ShardMap map;
  return reply.ok() && DecodeShards(*reply, options_.shards, &map).ok() &&
         own_->shards().Merge(map).ok();
}

void ReplicaHost::StartOwnGroup() {
  const Status restored = own_->checkpoints().RestoreIfWanted();
  if (IsTransient(restored)) {
    LogError("server {}: {}: it serves nothing before that can be read", options_.index,
             restored.message());
    next_lookup_ = RealClock::Get()->Now() + kRestoreEvery;
    return;
  }
  if (!restored.ok()) return Retire(restored.message());
  const MutexLock lock(mu_);
  if (stop_ || Find(options_.index) != nullptr) return;
  ReplicaGroup group;
  group.core = own_;
  group.primary = true;
  groups_[options_.index] = group;
  own_->SetRole(ServerRole::kPrimary);
}

bool ReplicaHost::PrimaryIsGone(const ReplicaGroup& group, const MemberView& view) const {
  const auto from = static_cast<size_t>(group.from);
  const bool named = from < view.servers.size() && view.servers[from] == group.from_address;
  if (named) return false;
  // It may still answer questions while it believes that it is in_sync.
  return !group.core->backup().has_primary_connection() ||
         RealClock::Get()->Now() - group.core->backup().last_entry_at() > 2 * kPingEvery;
}

void ReplicaHost::WatchPrimaries(const MemberView& view) {
  const MutexLock lock(mu_);
  for (auto at = groups_.begin(); at != groups_.end();) {
    const int index = at->first;
    ReplicaGroup& group = at->second;
    ++at;
    if (group.primary || stop_ || !PrimaryIsGone(group, view)) continue;
    if (!TakeOver(index, &group)) groups_.erase(index);
  }
}

// The index's own process first, then the next ones in the ring.
std::vector<int> ReplicaHost::Candidates(int index, const MemberView& view) const {
  std::vector<int> order;
  if (index != options_.index) order.push_back(index);
  const int named = static_cast<int>(view.servers.size());
  for (int step = 1; step <= named; ++step) {
    const int next = (options_.index + step) % named;
    if (next != index && next != options_.index) order.push_back(next);
  }
  std::erase_if(order, [&](int server) {
    return static_cast<size_t>(server) >= view.servers.size() ||
           view.servers[static_cast<size_t>(server)].empty();
  });
  return order;
}

void ReplicaHost::MaintainBackup(int index, const MemberView& view) {
  const auto backup = BackupOf(index);
  if (backup == nullptr) return ChooseBackup(index, view);
  if (BackupIsDead(*backup, view)) return DropBackup(index);
  const auto core = CoreOf(index);
  bool down = false;
  for (uint32_t lane = 0; lane < core->lanes(); ++lane)
    down |= core->replicator().log_state(lane).down;
  if (!down) return AdvanceSync(index, backup.get());
  if (!backup->enabling_sync) return DropBackup(index);
  busy_ = true;
  const Status again = Reconnect(index, backup.get());
  if (again.code() == Code::kAborted) Retire(again.message());
}

bool ReplicaHost::BackupIsDead(const Backup& backup, const MemberView& view) {
  {
    const MutexLock lock(mu_);
    if (backup.dead) return true;
  }
  const auto server = static_cast<size_t>(backup.server);
  return server >= view.servers.size() || view.servers[server] != backup.address;
}

void ReplicaHost::DropBackup(int index) {
  std::shared_ptr<Backup> gone;
  std::shared_ptr<ServerCore> core;
  {
    const MutexLock lock(mu_);
    ReplicaGroup* group = Find(index);
    if (group == nullptr || stop_ || fenced_) return;
    gone = std::move(group->backup);
    group->backup = nullptr;
    ++group->epoch;
    core = group->core;
  }
  busy_ = true;
  LogInfo("server {}: the copy of server {}'s rows at server {} is gone", options_.index, index,
          gone == nullptr ? -1 : gone->server);
  core->replicator().Stop();
}

void ReplicaHost::ChooseBackup(int index, const MemberView& view) {
  const std::vector<int> candidates = Candidates(index, view);
  std::shared_ptr<Backup> backup;
  for (const int to : candidates) {
    backup = Connect(index, to, view.servers[static_cast<size_t>(to)]);
    if (backup != nullptr) break;
  }
  const MutexLock lock(mu_);
  ReplicaGroup* group = Find(index);
  if (group == nullptr || stop_) return;
  group->open = group->open || candidates.empty();
  busy_ = busy_ || backup != nullptr || !group->open;
  group->backup = std::move(backup);
}

std::shared_ptr<ReplicaConnection> ReplicaHost::MakeConnection(
    const std::weak_ptr<ServerCore>& core, uint32_t lane, std::unique_ptr<Connection> connection) {
  ReplicaConnection::Events events;
  events.confirmed = [core, lane](const ReplicaConnection* from, uint64_t position) {
    if (const auto alive = core.lock()) alive->replicator().OnConfirmed(lane, from, position);
  };
  events.lost = [core, lane, host = weak_from_this()](const ReplicaConnection* from) {
    const auto alive = core.lock();
    if (alive != nullptr) alive->replicator().OnConnectionLost(lane, from);
    if (const auto held = host.lock()) held->Wake();
  };
  return std::make_shared<ReplicaConnection>(std::move(connection), std::move(events));
}

std::shared_ptr<ReplicaHost::Backup> ReplicaHost::Connect(int index, int to,
                                                          const std::string& address) {
  const auto core = CoreOf(index);
  auto backup = std::make_shared<Backup>();
  backup->server = to;
  backup->address = address;
  backup->copy_id = RandomSeed() | 1;
  backup->cursors.resize(core->lanes());
  backup->must_confirm.resize(core->lanes());
  Hello hello = MakeHello(options_, HelloKind::kCopy, index, backup->copy_id);
  {
    const MutexLock lock(mu_);
    hello.epoch = Find(index)->epoch;
  }
  for (hello.lane = 0; hello.lane < core->lanes(); ++hello.lane) {
    auto dialled = Dial(address, hello);
    if (!dialled.ok() || dialled->welcome.lanes != core->lanes()) return nullptr;
    backup->incarnation = static_cast<int64_t>(dialled->welcome.ownership);
    backup->connections.push_back(MakeConnection(core, hello.lane, std::move(dialled->connection)));
  }
  for (uint32_t lane = 0; lane < core->lanes(); ++lane) {
    core->replicator().Start(lane, backup->connections[lane]);
    backup->connections[lane]->Start();
    backup->connections[lane]->FlushReplies();
  }
  return backup;
}

bool ReplicaHost::Confirmed(ServerCore* core, const Backup& backup) const {
  for (uint32_t lane = 0; lane < core->lanes(); ++lane) {
    if (core->replicator().log_state(lane).confirmed < backup.must_confirm[lane]) return false;
  }
  return true;
}

// Copying, then enabling_sync: first answers wait for the backup, then the backup is told that it
// is whole. What was answered without it is confirmed before.
void ReplicaHost::AdvanceSync(int index, Backup* backup) {
  if (backup->in_sync) return;
  busy_ = true;
  const auto core = CoreOf(index);
  for (uint32_t lane = 0; lane < core->lanes() && !backup->enabling_sync; ++lane) {
    RowCursor& cursor = backup->cursors[lane];
    for (int i = 0; i < kEntriesPerRun && core->replicator().CopySomeRows(lane, &cursor); ++i) {
    }
    if (!cursor.done) return;
    if (backup->must_confirm[lane] == 0)
      backup->must_confirm[lane] = core->replicator().log_state(lane).end;
  }
  if (!Confirmed(core.get(), *backup)) return;
  if (!backup->enabling_sync) {
    backup->enabling_sync = true;
    for (uint32_t lane = 0; lane < core->lanes(); ++lane) {
      core->replicator().EnableSync(lane);
      backup->must_confirm[lane] = core->replicator().log_state(lane).end;
    }
    return;
  }
  LogInfo("server {}: the rows of server {} are also at server {}", options_.index, index,
          backup->server);
  const MutexLock lock(mu_);
  backup->in_sync = true;
  if (ReplicaGroup* group = Find(index)) group->open = true;
}

Status ReplicaHost::Reconnect(int index, Backup* backup) {
  const auto core = CoreOf(index);
  Hello hello = MakeHello(options_, HelloKind::kCopy, index, backup->copy_id);
  hello.clock = 1;
  {
    const MutexLock lock(mu_);
    hello.epoch = Find(index)->epoch;
  }
  for (hello.lane = 0; hello.lane < core->lanes(); ++hello.lane) {
    if (!core->replicator().log_state(hello.lane).down) continue;
    TRY_ASSIGN(OpenedConnection dialled, Dial(backup->address, hello));
    const uint64_t confirmed = dialled.welcome.last_seq;
    auto connection = MakeConnection(core, hello.lane, std::move(dialled.connection));
    core->replicator().Resume(hello.lane, connection, confirmed);
    connection->Start();
    connection->FlushReplies();
    backup->connections[hello.lane].swap(connection);
  }
  return Status::Ok();
}

}  // namespace shoal::ps
