// The servers that a client is connected to: those that own rows, and the leader. They come and go
// while it works (docs/design/partition.md, "Joining and leaving servers").
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/bytes.h"
#include "base/log.h"
#include "base/mutex.h"
#include "ps/client/client_core.h"

namespace shoal::ps {
namespace {

constexpr Duration kFirstBackoff = std::chrono::milliseconds(5);
constexpr Duration kLongestBackoff = std::chrono::milliseconds(200);
constexpr Duration kConnectWithin = std::chrono::seconds(1);  // while new requests wait
constexpr Duration kLookWithin = std::chrono::milliseconds(100);
constexpr Duration kAnswerWithin = std::chrono::milliseconds(500);
constexpr int kRounds = 8;

bool Names(const MemberView& view, int server) {
  const auto index = static_cast<size_t>(server);
  return index < view.servers.size() && !view.servers[index].empty();
}

Status AwaitMembers(Members* members, Reconnector* reconnector, TimePoint deadline) {
  Duration backoff = kFirstBackoff;
  while (members->Current().servers.empty()) {
    if (RealClock::Get()->Now() >= deadline || reconnector->WaitForStop(backoff))
      return Unavailable("there are no servers to connect to");
    backoff = std::min(backoff * 2, kLongestBackoff);
  }
  return Status::Ok();
}

// The checkpoint that is being taken; -1: none.
int64_t CheckpointUnderWay(Channel* leader) {
  const auto reply =
      SendRequest(leader, FrameType::kCutting, 0, {}, RealClock::Get()->Now() + kAnswerWithin);
  int64_t id = -1;
  if (!reply.ok()) return id;
  ByteReader reader(*reply);
  return reader.Get(&id).ok() ? id : -1;
}

}  // namespace

Status ClientCore::CheckWelcome(int server, const Welcome& welcome) const {
  const auto initial_servers = static_cast<uint32_t>(std::max(welcome.servers, 0));
  if (welcome.server != server || initial_servers == 0 ||
      (initial_servers_ != 0 && initial_servers != initial_servers_)) {
    return FailedPrecondition(
        fmt::format("the server at the address of server {} says that it is number {}, in a job "
                    "that began with {} servers, expected number {} and {} servers",
                    server, welcome.server, welcome.servers, server, initial_servers_));
  }
  if (welcome.lanes < 1 || welcome.lanes > 1024 || !std::has_single_bit(welcome.shards) ||
      welcome.shards > 65536 || welcome.shards < initial_servers) {
    return FailedPrecondition(fmt::format("server {} has {} lanes and {} shards: out of bounds",
                                          server, welcome.lanes, welcome.shards));
  }
  const uint32_t known = lanes(server);
  if ((known != 0 && known != welcome.lanes) || (shards_ != 0 && shards_ != welcome.shards)) {
    return FailedPrecondition(
        fmt::format("server {} has {} lanes and {} shards, expected {} and {}: start all servers "
                    "with the same",
                    server, welcome.lanes, welcome.shards, known, shards_));
  }
  return Status::Ok();
}

Result<OpenedConnection> ClientCore::DialUntil(int server, uint32_t lane, uint64_t first_seq,
                                               TimePoint deadline, std::string* address) {
  for (Duration backoff = kFirstBackoff;; backoff = std::min(backoff * 2, kLongestBackoff)) {
    auto dialled = dialer_.Dial({server, lane, first_seq, worker_.clock()}, address,
                                deadline - RealClock::Get()->Now());
    if (dialled.ok() || !IsTransient(dialled.status())) return dialled;
    if (reconnector_.WaitForStop(std::min<Duration>(backoff, deadline - RealClock::Get()->Now()))) {
      return Cancelled(fmt::format("connecting to server {} was interrupted", server));
    }
    if (RealClock::Get()->Now() >= deadline) {
      return Unavailable(
          fmt::format("cannot reach server {}: {}", server, dialled.status().message()));
    }
  }
}

Status ClientCore::ConnectAll() {
  const TimePoint deadline = RealClock::Get()->Now() + options_.connect_timeout;
  TRY(AwaitMembers(members_, &reconnector_, deadline));
  // First: it may ask newcomers to wait, and says how many servers there were at first.
  Welcome leader;
  TRY(ConnectServer(kLeader, deadline, &leader));
  restored_ = leader.restored_checkpoint;
  initial_servers_ = static_cast<uint32_t>(leader.servers);
  shards_ = leader.shards;
  std::vector<uint32_t> lanes_of(initial_servers_, 1);
  router_.Begin(shards_, lanes_of);
  if (leader.ownership > 1) {
    bool news = false;
    TRY_ASSIGN(const std::string reply,
               SendRequest(&this->leader(), FrameType::kShards, 0, {}, deadline));
    TRY(router_.Learn(reply, &news));
  }
  TRY(ConnectOwners(deadline));
  // Which lanes have what has not moved follows from how many each of them has.
  for (uint32_t server = 0; server < initial_servers_; ++server) {
    const int index = static_cast<int>(server);
    if (index < servers() && lanes(index) > 0) lanes_of[server] = lanes(index);
  }
  router_.Begin(shards_, lanes_of);
  UseShards();
  redirector_.Open();
  return Status::Ok();
}

// Under grow_mu_. Its lanes' channels exist and rest.
Status ClientCore::ConnectLane(int server, uint32_t lane, Channel* channel, TimePoint deadline,
                               Welcome* welcome) {
  std::string address;
  const uint64_t first_seq = channel == nullptr ? 1 : channel->first_unanswered();
  TRY_ASSIGN(OpenedConnection dialled, DialUntil(server, lane, first_seq, deadline, &address));
  TRY(CheckWelcome(server, dialled.welcome).With(address));
  if (options_.fail_on_data_loss && dialled.welcome.lost_rows) return RowsAreLost(server);
  *welcome = dialled.welcome;
  ServerSlot& slot = server_slots_[static_cast<size_t>(server)];
  if (slot.where == 0) {
    if (channels_.size() + welcome->lanes > AppendOnlyList<ServerSlot>::kMost) {
      return ResourceExhausted("this client is connected to too many lanes");
    }
    const uint64_t first = channels_.size();
    for (uint32_t i = 0; i < welcome->lanes; ++i) {
      channels_.Next() = MakeChannel(server, i);
      channels_.Next()->Suspend();
      channels_.Publish();
    }
    slot.where = first << 32 | welcome->lanes;
  }
  {
    const MutexLock lock(mu_);
    instances_[server] = welcome->instance;
  }
  this->channel(server, lane).Resume(address, std::move(dialled), {}, true);
  return Status::Ok();
}

Status ClientCore::ConnectServer(int server, TimePoint deadline, Welcome* welcome) {
  const MutexLock grow(grow_mu_);
  while (servers() <= server) {
    server_slots_.Next();
    server_slots_.Publish();
  }
  ServerSlot& slot = server_slots_[static_cast<size_t>(server)];
  if (slot.connected) return Status::Ok();
  {
    const MutexLock lock(mu_);
    TRY(failed_);
  }
  const bool known = lanes(server) > 0;
  if (known && channel(server).failed()) {
    return Unavailable(fmt::format("server {} had been given up", server));
  }
  Welcome here;
  TRY(ConnectLane(server, 0, known ? &channel(server) : nullptr, deadline, &here));
  Status status;
  for (uint32_t lane = 1; lane < here.lanes && status.ok(); ++lane) {
    Welcome other;
    status = ConnectLane(server, lane, &channel(server, lane), deadline, &other);
  }
  if (!status.ok()) {
    for (uint32_t lane = 0; lane < here.lanes; ++lane) channel(server, lane).Suspend();
    return status;
  }
  slot.connected = true;
  if (welcome != nullptr) *welcome = here;
  OnServerConnected(server);
  return Status::Ok();
}

// Tells a new server before any request: the tables, and the marker of a checkpoint that has gone
// out to the others. A marker of an old checkpoint would begin a cut that is never ended.
void ClientCore::OnServerConnected(int server) {
  const int64_t marked = markers_.last();
  const bool under_way = marked >= 0 && marked == CheckpointUnderWay(&leader());
  const TimePoint deadline = RealClock::Get()->Now() + kConnectWithin;
  for (uint32_t lane = 0; lane < lanes(server); ++lane) {
    Channel& to = channel(server, lane);
    if (under_way) markers_.Send(&to, marked, {});
    std::vector<std::shared_ptr<Call>> calls;
    FrameHeader head;
    head.type = FrameType::kCreateTable;
    for (std::string& spec : TableSpecs()) {
      calls.push_back(to.StartCall(head, std::move(spec), false));
    }
    for (const auto& call : calls) {
      const auto made = to.FinishCall(call, deadline);
      if (!made.ok()) LogWarning("{}: {}", to.Name(), made.status().message());
    }
  }
}

Status ClientCore::ConnectOwners(TimePoint deadline) {
  for (int round = 0; round < kRounds; ++round) {
    bool news = false;
    for (const int server : OwnersOf(router_.Known())) {
      if (connected(server)) continue;
      Welcome welcome;
      TRY(ConnectServer(server, deadline, &welcome));
      if (welcome.ownership == router_.Known().version()) continue;
      TRY_ASSIGN(const std::string reply,
                 SendRequest(&channel(server), FrameType::kShards, 0, {}, deadline));
      TRY(router_.Learn(reply, &news));
    }
    if (!news) return Status::Ok();
  }
  return Status::Ok();
}

// Where an owner cannot be reached, the one before it goes on refusing, and we ask again.
void ClientCore::UseShards() {
  const Status status = ConnectOwners(RealClock::Get()->Now() + kConnectWithin);
  if (!status.ok()) LogInfo("a server that got rows: {}", status.message());
  const ShardMap map = router_.Known();
  std::vector<size_t> routes = router_.routes();
  routes.resize(map.shards());
  for (uint32_t shard = 0; shard < map.shards(); ++shard) {
    const Owner owner = map.At(shard).owner;
    if (!connected(owner.server)) continue;
    const uint64_t where = server_slots_[owner.server].where;
    routes[shard] = (where >> 32) + owner.lane % static_cast<uint32_t>(where);
  }
  router_.SetRoutes(std::move(routes));
  CloseUnneededChannels();
}

void ClientCore::CloseUnneededChannels() {
  std::set<int> used = {kLeader};
  for (const size_t channel : router_.routes()) used.insert(channels_[channel]->server());
  const MemberView view = members_->Current();
  for (int server = 0; server < servers(); ++server) {
    if (used.contains(server) || (keeps_named_ && Names(view, server))) continue;
    LetGo(server);
  }
}

bool ClientCore::IsUnneeded(int server) {
  if (server == kLeader) return false;
  if (router_.OwnsShards(server)) return false;
  return channel(server).idle();
}

void ClientCore::LetGo(int server) {
  const MutexLock grow(grow_mu_);
  if (server == kLeader) return;
  const TimePoint deadline = RealClock::Get()->Now() + kAnswerWithin;
  for (uint32_t lane = 0; lane < lanes(server); ++lane) {
    Channel& from = channel(server, lane);
    if (from.suspended()) continue;
    if (!from.idle() || from.failed()) return;
    FrameHeader head;
    head.type = FrameType::kLeave;
    // It waits for nothing of ours any more. One that is not there need not hear it.
    if (from.up()) {
      const auto left = from.FinishCall(from.StartCall(head, {}, true), deadline);
    }
    if (!from.Suspend()) return;
    server_slots_[static_cast<size_t>(server)].connected = false;
    const MutexLock lock(mu_);
    instances_.erase(server);
  }
}

void ClientCore::ConnectNamed(TimePoint deadline) {
  keeps_named_ = true;
  const MemberView view = members_->Current();
  for (int server = 0; server < static_cast<int>(view.servers.size()); ++server) {
    if (!Names(view, server) || connected(server)) continue;
    const Status status =
        ConnectServer(server, std::min(deadline, RealClock::Get()->Now() + kLookWithin));
    if (!status.ok()) LogInfo("server {}: {}", server, status.message());
  }
}

std::vector<Channel*> ClientCore::Connected() const {
  std::vector<Channel*> all;
  for (const auto& channel : channels_) {
    if (!channel->suspended()) all.push_back(channel.get());
  }
  return all;
}

std::vector<Channel*> ClientCore::FirstLanes() const {
  std::vector<Channel*> first = Connected();
  std::erase_if(first, [](const Channel* channel) { return channel->lane() != 0; });
  return first;
}

}  // namespace shoal::ps
