#include "ps/replica_host.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/id.h"
#include "base/log.h"
#include "ps/shard_link.h"

namespace shoal::ps {
namespace {

constexpr Duration kDialTimeout = std::chrono::milliseconds(500);
constexpr Duration kBusyRound = std::chrono::milliseconds(2);
constexpr Duration kIdleRound = std::chrono::milliseconds(20);
constexpr Duration kClaimEvery = std::chrono::milliseconds(20);
// A primary that hears nothing of its backup for this long answers nobody, for what it logged as a
// sign of life is not confirmed; a backup takes over no sooner than twice as late, unless the
// stream has ended.
constexpr Duration kPingEvery = std::chrono::milliseconds(250);
constexpr int kEntriesARound = 32;
// After a checkpoint could not be read.
constexpr Duration kRestoreEvery = std::chrono::seconds(1);

// Whether restoring may work at another time: what is damaged, missing, or of a later version of
// the format, stays so.
bool MayPass(const Status& restored) {
  return !restored.ok() && restored.code() != Code::kDataLoss &&
         restored.code() != Code::kNotFound && restored.code() != Code::kUnimplemented;
}

}  // namespace

std::shared_ptr<ReplicaHost> ReplicaHost::Make(std::shared_ptr<ServerCore> own) {
  std::shared_ptr<ReplicaHost> host(new ReplicaHost(std::move(own)));
  host->own_->SetRole(ServerCore::Role::kWaits);
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
  std::map<int, Seat> seats;
  {
    std::lock_guard lock(mu_);
    stop_ = true;
    seats = seats_;
  }
  Wake();
  for (auto& [index, seat] : seats) seat.core->Stop();
  if (thread_.joinable()) thread_.join();
  std::lock_guard lock(mu_);
  seats_.clear();
}

void ReplicaHost::SetLeaving() {
  std::lock_guard lock(mu_);
  leaving_ = true;
}

void ReplicaHost::Wake() {
  std::lock_guard lock(wake_mu_);
  woken_ = true;
  wake_.notify_all();
}

ReplicaHost::Seat* ReplicaHost::Find(int index) {
  const auto found = seats_.find(index);
  return found == seats_.end() ? nullptr : &found->second;
}

std::shared_ptr<ReplicaHost::Backup> ReplicaHost::BackupOf(int index) {
  std::lock_guard lock(mu_);
  const Seat* seat = Find(index);
  return seat == nullptr ? nullptr : seat->backup;
}

std::shared_ptr<ServerCore> ReplicaHost::CoreOf(int index) {
  std::lock_guard lock(mu_);
  const Seat* seat = Find(index);
  return seat == nullptr ? nullptr : seat->core;
}

std::vector<int> ReplicaHost::Primaries() {
  std::lock_guard lock(mu_);
  std::vector<int> indices;
  for (const auto& [index, seat] : seats_) {
    if (seat.primary) indices.push_back(index);
  }
  return indices;
}

std::vector<int> ReplicaHost::serves() { return Primaries(); }

std::vector<std::shared_ptr<ServerCore>> ReplicaHost::Others() {
  std::lock_guard lock(mu_);
  std::vector<std::shared_ptr<ServerCore>> cores;
  for (const auto& [index, seat] : seats_) {
    if (seat.primary && seat.core != own_) cores.push_back(seat.core);
  }
  return cores;
}

std::vector<int> ReplicaHost::keeps() {
  std::lock_guard lock(mu_);
  std::vector<int> indices;
  for (const auto& [index, seat] : seats_) {
    if (!seat.primary && seat.core->whole()) indices.push_back(index);
  }
  return indices;
}

bool ReplicaHost::copied() {
  std::lock_guard lock(mu_);
  bool some = false;
  for (const auto& [index, seat] : seats_) {
    if (!seat.primary) continue;
    if (seat.backup == nullptr || seat.backup->dead || !seat.backup->paired) return false;
    some = true;
  }
  return some;
}

void ReplicaHost::ReportDead(int worker) {
  if (const auto core = CoreOf(0)) core->ReportDead(worker);
}

// --- What others ask ---

Result<std::shared_ptr<ServerCore>> ReplicaHost::Route(const Hello& hello) {
  if (hello.kind == HelloKind::kClaim) return std::shared_ptr<ServerCore>();
  if (hello.kind == HelloKind::kCopy) return RouteCopy(hello);
  std::lock_guard lock(mu_);
  const Seat* seat = Find(hello.server < 0 ? options_.index : hello.server);
  if (stop_ || fenced_ || seat == nullptr || !seat->primary) {
    return Unavailable(
        fmt::format("the rows of server {} are not at server {}", hello.server, options_.index));
  }
  if (!seat->open) {
    return Unavailable(fmt::format("server {} waits for its copy", hello.server));
  }
  return seat->core;
}

Result<std::shared_ptr<ServerCore>> ReplicaHost::RouteCopy(const Hello& hello) {
  if (hello.server < 0 || hello.server >= kMostServers || hello.from < 0 ||
      hello.from >= kMostServers || hello.from == options_.index || hello.session == 0) {
    return InvalidArgument("a copy of a server that there is not");
  }
  const MemberView view = options_.members->Current();
  std::lock_guard lock(mu_);
  if (stop_ || fenced_) return Unavailable("the server stops");
  if (leaving_ && hello.clock == 0) return Unavailable("the server leaves");
  if (hello.life < lives_[hello.from]) {
    return Aborted(fmt::format("server {} has a later life", hello.from));
  }
  Seat* seat = Find(hello.server);
  if (seat != nullptr && !seat->primary && seat->sync == hello.session) return seat->core;
  if (seat != nullptr && (seat->primary || seat->core->whole()) && hello.epoch <= seat->epoch &&
      !(hello.epoch == seat->epoch && !seat->primary && seat->from == hello.from)) {
    return Aborted(fmt::format("the rows of server {} are here under epoch {}, not {}",
                               hello.server, seat->epoch, hello.epoch));
  }
  if (hello.clock != 0 || hello.lane != 0) return NotFound("that copy is not here");
  if (seat != nullptr && seat->primary) return Unavailable("it is still served here");
  ServerOptions options = options_;
  options.index = hello.server;
  Seat fresh;
  fresh.core = ServerCore::MakeCopy(std::move(options));
  fresh.core->SetHost(weak_from_this());
  fresh.epoch = hello.epoch;
  fresh.from = hello.from;
  fresh.from_life = hello.life;
  fresh.sync = hello.session;
  if (static_cast<size_t>(hello.from) < view.servers.size()) {
    fresh.from_address = view.servers[static_cast<size_t>(hello.from)];
  }
  LogInfo("server {}: takes a copy of the rows of server {} from server {}", options_.index,
          hello.server, hello.from);
  seats_[hello.server] = fresh;
  return fresh.core;
}

bool ReplicaHost::Claim(const Hello& hello) {
  std::lock_guard lock(mu_);
  if (stop_ || fenced_ || hello.from < 0 || hello.from >= kMostServers) return false;
  int64_t& life = lives_[hello.from];
  life = std::max(life, hello.life);
  for (auto at = seats_.begin(); at != seats_.end();) {
    Seat& seat = at->second;
    const bool theirs = !seat.primary && seat.from == hello.from && seat.from_life < life;
    if (seat.backup != nullptr && seat.backup->server == hello.from && seat.backup->life < life) {
      seat.backup->dead = true;
    }
    const int index = at->first;
    ++at;
    if (theirs && !Succeed(index, &seat)) seats_.erase(index);
  }
  Wake();
  const Seat* seat = Find(hello.server);
  return seat != nullptr && (seat->primary || seat->core->whole());
}

// Under mu_. False: the copy is not whole, and worth nothing.
bool ReplicaHost::Succeed(int index, Seat* seat) {
  if (seat->core->emptied()) {
    LogInfo("server {}: server {} has left, and nothing with it", options_.index, index);
    return false;
  }
  if (!seat->core->whole()) {
    LogWarning("server {}: server {} died before its copy of server {} was whole", options_.index,
               seat->from, index);
    return false;
  }
  seat->core->TakeOver();
  seat->primary = seat->open = true;
  ++seat->epoch;
  LogWarning("server {}: took over the rows of server {}, whose primary died", options_.index,
             index);
  return true;
}

// --- The manager's thread ---

void ReplicaHost::Run() {
  for (;;) {
    {
      std::lock_guard lock(mu_);
      if (stop_) return;
    }
    Round();
    std::unique_lock lock(wake_mu_);
    wake_.wait_for(lock, busy_ ? kBusyRound : kIdleRound, [this] { return woken_; });
    woken_ = false;
  }
}

void ReplicaHost::Round() {
  busy_ = false;
  {
    std::lock_guard lock(mu_);
    if (fenced_) return;
  }
  const MemberView view = options_.members->Current();
  if (Fenced(view)) return Retire(fmt::format("Members no longer names {}", address_));
  ClaimOwn(view);
  WatchPrimaries(view);
  const TimePoint now = RealClock::Get()->Now();
  const bool ping = now >= next_ping_;
  if (ping) next_ping_ = now + kPingEvery;
  for (const int index : Primaries()) {
    TendBackup(index, view);
    const auto core = CoreOf(index);
    if (core == nullptr || !ping) continue;
    core->PingLogs();
    core->Tick();
  }
}

// Members named us once and does not any more: somebody else is this server now.
bool ReplicaHost::Fenced(const MemberView& view) {
  const auto self = static_cast<size_t>(options_.index);
  const bool named = self < view.servers.size() && view.servers[self] == address_;
  seen_ = seen_ || named;
  return seen_ && !named;
}

void ReplicaHost::Retire(const std::string& why) {
  std::map<int, Seat> seats;
  {
    std::lock_guard lock(mu_);
    if (fenced_) return;
    fenced_ = true;
    seats = seats_;
  }
  LogError("server {}: {}: it answers nobody any more", options_.index, why);
  for (auto& [index, seat] : seats) seat.core->Stop();
}

Hello ReplicaHost::HelloOf(HelloKind kind, int server, uint64_t session) const {
  Hello hello;
  hello.kind = kind;
  hello.server = server;
  hello.from = options_.index;
  hello.life = options_.life;
  hello.session = session;
  return hello;
}

Result<Dialled> ReplicaHost::Dial(const std::string& address, const Hello& hello) {
  const bool local = address.starts_with("inproc:");
  if (local && inproc_ == nullptr) return FailedPrecondition("there is no hub");
  return (local ? inproc_ : tcp_)->Dial(address, hello, kDialTimeout);
}

// Asks everybody whether the rows of this index are with them; if all have said no, they are made
// anew, or restored from the checkpoint. Asking tells them that our earlier lives are over: they
// are told too when the rows have been found meanwhile, for who has a copy at an earlier life of
// ours would wait for it for ever.
void ReplicaHost::ClaimOwn(const MemberView& view) {
  const TimePoint now = RealClock::Get()->Now();
  if (now < next_claim_) return;
  next_claim_ = now + kClaimEvery;
  if (view.servers.size() < static_cast<size_t>(options_.servers)) return;
  const bool here = CoreOf(options_.index) != nullptr;
  bool all = true, held = here;
  for (int other = 0; other < static_cast<int>(view.servers.size()); ++other) {
    const std::string& address = view.servers[static_cast<size_t>(other)];
    if (other == options_.index || address.empty() || (here && told_.contains(other))) continue;
    auto dialled = Dial(address, HelloOf(HelloKind::kClaim, options_.index, 1));
    all = all && dialled.ok();
    if (!dialled.ok()) continue;
    held = held || dialled->welcome.last_seq != 0;
    told_.insert(other);
    if (!here) all = LearnFrom(std::move(dialled->link)) && all;
  }
  if (all && !held) ServeOwn();
}

// Which shards have moved, before rows are restored.
bool ReplicaHost::LearnFrom(std::unique_ptr<Link> link) {
  ShardLink other(std::move(link));
  other.Start();
  const auto reply = other.Ask(FrameType::kShards, {}, RealClock::Get()->Now() + kDialTimeout);
  ShardMap map;
  return reply.ok() && DecodeShards(*reply, options_.shards, &map).ok() &&
         own_->MergeShards(map).ok();
}

void ReplicaHost::ServeOwn() {
  const Status restored = own_->RestoreLate();
  if (MayPass(restored)) {
    LogError("server {}: {}: it serves nothing before that can be read", options_.index,
             restored.message());
    next_claim_ = RealClock::Get()->Now() + kRestoreEvery;
    return;
  }
  if (!restored.ok()) return Retire(restored.message());
  std::lock_guard lock(mu_);
  if (stop_ || Find(options_.index) != nullptr) return;
  Seat seat;
  seat.core = own_;
  seat.primary = true;
  seats_[options_.index] = seat;
  own_->SetRole(ServerCore::Role::kServes);
}

bool ReplicaHost::PrimaryIsGone(const Seat& seat, const MemberView& view) const {
  const auto from = static_cast<size_t>(seat.from);
  const bool named = from < view.servers.size() && view.servers[from] == seat.from_address;
  if (named) return false;
  // It may still answer questions while it believes that it is paired.
  return !seat.core->has_copier() ||
         RealClock::Get()->Now() - seat.core->last_entry() > 2 * kPingEvery;
}

void ReplicaHost::WatchPrimaries(const MemberView& view) {
  std::lock_guard lock(mu_);
  for (auto at = seats_.begin(); at != seats_.end();) {
    const int index = at->first;
    Seat& seat = at->second;
    ++at;
    if (seat.primary || stop_ || !PrimaryIsGone(seat, view)) continue;
    if (!Succeed(index, &seat)) seats_.erase(index);
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

void ReplicaHost::TendBackup(int index, const MemberView& view) {
  const auto backup = BackupOf(index);
  if (backup == nullptr) return FindBackup(index, view);
  if (BackupIsDead(*backup, view)) return DropBackup(index);
  const auto core = CoreOf(index);
  bool down = false;
  for (uint32_t lane = 0; lane < core->lanes(); ++lane) down |= core->log_state(lane).down;
  if (!down) return Advance(index, backup.get());
  if (!backup->pairing) return DropBackup(index);
  busy_ = true;
  const Status again = Reconnect(index, backup.get());
  if (again.code() == Code::kAborted) Retire(again.message());
}

bool ReplicaHost::BackupIsDead(const Backup& backup, const MemberView& view) {
  {
    std::lock_guard lock(mu_);
    if (backup.dead) return true;
  }
  const auto server = static_cast<size_t>(backup.server);
  return server >= view.servers.size() || view.servers[server] != backup.address;
}

void ReplicaHost::DropBackup(int index) {
  std::shared_ptr<Backup> gone;
  std::shared_ptr<ServerCore> core;
  {
    std::lock_guard lock(mu_);
    Seat* seat = Find(index);
    if (seat == nullptr || stop_ || fenced_) return;
    gone = std::move(seat->backup);
    seat->backup = nullptr;
    ++seat->epoch;
    core = seat->core;
  }
  busy_ = true;
  LogInfo("server {}: the copy of server {}'s rows at server {} is gone", options_.index, index,
          gone == nullptr ? -1 : gone->server);
  core->CloseLogs();
}

void ReplicaHost::FindBackup(int index, const MemberView& view) {
  const std::vector<int> candidates = Candidates(index, view);
  std::shared_ptr<Backup> backup;
  for (const int to : candidates) {
    backup = Connect(index, to, view.servers[static_cast<size_t>(to)]);
    if (backup != nullptr) break;
  }
  std::lock_guard lock(mu_);
  Seat* seat = Find(index);
  if (seat == nullptr || stop_) return;
  seat->open = seat->open || candidates.empty();
  busy_ = busy_ || backup != nullptr || !seat->open;
  seat->backup = std::move(backup);
}

std::shared_ptr<ReplicaHost::Backup> ReplicaHost::Connect(int index, int to,
                                                          const std::string& address) {
  const auto core = CoreOf(index);
  auto backup = std::make_shared<Backup>();
  backup->server = to;
  backup->address = address;
  backup->sync = RandomSeed() | 1;
  backup->cursors.resize(core->lanes());
  backup->goal.resize(core->lanes());
  Hello hello = HelloOf(HelloKind::kCopy, index, backup->sync);
  {
    std::lock_guard lock(mu_);
    hello.epoch = Find(index)->epoch;
  }
  const auto weak = weak_from_this();
  for (hello.lane = 0; hello.lane < core->lanes(); ++hello.lane) {
    auto dialled = Dial(address, hello);
    if (!dialled.ok() || dialled->welcome.lanes != core->lanes()) return nullptr;
    backup->life = static_cast<int64_t>(dialled->welcome.ownership);
    backup->streams.push_back(
        std::make_shared<ReplicaStream>(core, hello.lane, std::move(dialled->link), [weak] {
          if (const auto host = weak.lock()) host->Wake();
        }));
  }
  for (uint32_t lane = 0; lane < core->lanes(); ++lane) {
    core->OpenLog(lane, backup->streams[lane]);
    backup->streams[lane]->Start();
    backup->streams[lane]->FlushReplies();
  }
  return backup;
}

bool ReplicaHost::Confirmed(ServerCore* core, const Backup& backup) const {
  for (uint32_t lane = 0; lane < core->lanes(); ++lane) {
    if (core->log_state(lane).confirmed < backup.goal[lane]) return false;
  }
  return true;
}

// Copying, then pairing: first answers wait for the backup, then the backup is told that it is
// whole. What was answered without it is confirmed before.
void ReplicaHost::Advance(int index, Backup* backup) {
  if (backup->paired) return;
  busy_ = true;
  const auto core = CoreOf(index);
  for (uint32_t lane = 0; lane < core->lanes() && !backup->pairing; ++lane) {
    ServerCore::RowCursor& cursor = backup->cursors[lane];
    for (int i = 0; i < kEntriesARound && core->LogRows(lane, &cursor); ++i) {
    }
    if (!cursor.done) return;
    if (backup->goal[lane] == 0) backup->goal[lane] = core->log_state(lane).end;
  }
  if (!Confirmed(core.get(), *backup)) return;
  if (!backup->pairing) {
    backup->pairing = true;
    for (uint32_t lane = 0; lane < core->lanes(); ++lane) {
      core->PairLog(lane);
      backup->goal[lane] = core->log_state(lane).end;
    }
    return;
  }
  LogInfo("server {}: the rows of server {} are also at server {}", options_.index, index,
          backup->server);
  std::lock_guard lock(mu_);
  backup->paired = true;
  if (Seat* seat = Find(index)) seat->open = true;
}

Status ReplicaHost::Reconnect(int index, Backup* backup) {
  const auto core = CoreOf(index);
  Hello hello = HelloOf(HelloKind::kCopy, index, backup->sync);
  hello.clock = 1;
  {
    std::lock_guard lock(mu_);
    hello.epoch = Find(index)->epoch;
  }
  const auto weak = weak_from_this();
  for (hello.lane = 0; hello.lane < core->lanes(); ++hello.lane) {
    if (!core->log_state(hello.lane).down) continue;
    TRY_ASSIGN(Dialled dialled, Dial(backup->address, hello));
    const uint64_t confirmed = dialled.welcome.last_seq;
    auto stream =
        std::make_shared<ReplicaStream>(core, hello.lane, std::move(dialled.link), [weak] {
          if (const auto host = weak.lock()) host->Wake();
        });
    core->ResumeLog(hello.lane, stream, confirmed);
    stream->Start();
    stream->FlushReplies();
    backup->streams[hello.lane].swap(stream);
  }
  return Status::Ok();
}

}  // namespace shoal::ps
