#include "ps/client/rebalancer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "base/fault_injection.h"
#include "ps/client/client_core.h"

namespace shoal::ps {

namespace {

// Not worth any stall.
constexpr double kLittle = 1 << 20;
constexpr int kAttempts = 20;

bool Worth(const ServerLoads& now, const std::vector<ShardMove>& moves, double start) {
  if (moves.empty()) return false;
  const std::vector<uint64_t> bytes = now.bytes();
  std::vector<int> owned(now.lanes.size());
  for (const ShardLoad& load : now.shards) ++owned[load.owner.server];
  double sum = 0, most = 0;
  int serving = 0;
  for (size_t server = 0; server < now.lanes.size(); ++server) {
    if (now.lanes[server] == 0 && owned[server] > 0) return true;
    if (now.lanes[server] == 0) continue;
    if (owned[server] == 0) return true;
    const auto here = static_cast<double>(bytes[server] + now.fixed[server]);
    sum += here;
    most = std::max(most, here);
    ++serving;
  }
  const double mean = sum / std::max(serving, 1);
  return most > mean * (1 + start) && most - mean > kLittle;
}

// "server 0, server 1": those that are connected.
std::string ServersOf(const ClientCore& core) {
  std::string names;
  for (const Channel* server : core.FirstLanes())
    names += fmt::format("{}server {}", names.empty() ? "" : ", ", server->server());
  return names;
}

}  // namespace

std::vector<uint64_t> ServerLoads::bytes() const {
  std::vector<uint64_t> by_server(lanes.size());
  for (const ShardLoad& load : shards) by_server[load.owner.server] += load.bytes;
  return by_server;
}

Result<ShardMap> Rebalancer::Map() {
  ShardMap map = core_->router().Known();
  for (Channel* server : core_->FirstLanes()) {
    TRY_ASSIGN(const std::string reply, SendRequest(server, FrameType::kShards, 0, {}, deadline_));
    ShardMap theirs;
    TRY(DecodeShards(reply, map.shards(), &theirs));
    map.Merge(theirs);
  }
  return map;
}

Status Rebalancer::MeasureLane(Channel* channel, ServerLoads* all) {
  TRY_ASSIGN(const std::string reply,
             SendRequest(channel, FrameType::kShardBytes, 0, {}, deadline_));
  ByteReader reader(reply);
  uint64_t flags = 0, fixed = 0;
  TRY(reader.Get(&flags));
  TRY(reader.Get(&fixed));
  const int server = channel->server();
  all->fixed[static_cast<size_t>(server)] += fixed;
  if ((flags & kShardsLeave) != 0 && channel->lane() == 0) all->leaving.push_back(server);
  if (flags != 0) all->lanes[static_cast<size_t>(server)] = 0;
  while (reader.remaining() > 0) {
    ShardLoad load;
    TRY(reader.Get(&load.shard));
    TRY(reader.Get(&load.bytes));
    load.owner = {static_cast<uint16_t>(server), static_cast<uint16_t>(channel->lane())};
    all->shards.push_back(load);
  }
  return Status::Ok();
}

Result<ServerLoads> Rebalancer::MeasureLoads() {
  core_->ConnectNamed(deadline_);
  ServerLoads all;
  const std::vector<Channel*> lanes = core_->Connected();
  for (int server = 0; server < core_->servers(); ++server) {
    all.lanes.push_back(core_->connected(server) ? core_->lanes(server) : 0);
  }
  all.fixed.resize(all.lanes.size());
  for (Channel* channel : lanes) TRY(MeasureLane(channel, &all));
  for (const int server : all.leaving) {
    const auto owns = [&](const ShardLoad& load) { return load.owner.server == server; };
    if (std::none_of(all.shards.begin(), all.shards.end(), owns)) core_->LetGo(server);
  }
  return all;
}

Status Rebalancer::Move(const ShardMove& move) {
  std::string body;
  ByteWriter writer(&body);
  writer.Put(move.shard);
  writer.Put(move.to.server);
  writer.Put(move.to.lane);
  TRY_ASSIGN(const std::string reply,
             SendRequest(&core_->channel(move.from.server), FrameType::kMoveShard, 0,
                         std::move(body), deadline_));
  uint64_t bytes = 0, stalled_us = 0;
  ByteReader reader(reply);
  TRY(reader.Get(&bytes));
  TRY(reader.Get(&stalled_us));
  ++info_.moves;
  info_.bytes_sent += bytes;
  info_.longest_stall =
      std::max<Duration>(info_.longest_stall, std::chrono::microseconds(stalled_us));
  return Status::Ok();
}

Result<RebalanceInfo> Rebalancer::Run(const Admin::Rebalance& how) {
  TRY(Drain(how));
  Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    status = PlanAndMove(how);
    if (status.code() != Code::kFailedPrecondition || how.by_itself) break;
  }
  if (status.code() == Code::kFailedPrecondition) (void)Finish();  // what was moved is moved
  TRY(status);
  return Finish();
}

Status Rebalancer::PlanAndMove(const Admin::Rebalance& how) {
  TRY_ASSIGN(const ServerLoads now, MeasureLoads());
  const auto servers = static_cast<long>(now.lanes.size());
  if (std::count(now.lanes.begin(), now.lanes.end(), 0u) == servers) {
    return InvalidArgument(
        "all servers are to be drained; at least one must keep the rows: leave one out");
  }
  info_.after = now.bytes();
  if (info_.before.empty()) info_.before = info_.after;
  const auto moves = PlanMoves(now.shards, now.lanes, how.tolerance, now.fixed);
  if (how.start > 0 && !Worth(now, moves, how.start)) return Status::Ok();
  const int before = info_.moves;
  Status refused;
  for (const ShardMove& move : moves) {
    if (info_.moves >= how.most) break;
    // Another client has moved it, or its new owner leaves: the other moves go on.
    const Status moved = Move(move);
    if (moved.code() == Code::kFailedPrecondition) {
      refused = moved;
      continue;
    }
    TRY(moved);
    info_.after[move.from.server] -= move.bytes;
    info_.after[move.to.server] += move.bytes;
  }
  info_.left = static_cast<int>(moves.size()) - (info_.moves - before);
  return refused;
}

// Servers know themselves whether they are drained, so that the next balancing run knows it.
Status Rebalancer::Drain(const Admin::Rebalance& how) {
  if (how.by_itself) return Status::Ok();
  core_->ConnectNamed(deadline_);
  const std::set<int> drained(how.drain.begin(), how.drain.end());
  size_t others = 0;
  for (const Channel* server : core_->FirstLanes()) others += !drained.contains(server->server());
  for (const int server : drained) {
    if (core_->connected(server)) continue;
    return InvalidArgument(
        fmt::format("there is no server {} to drain; the job has {}", server, ServersOf(*core_)));
  }
  if (others == 0) {
    return InvalidArgument(
        "all servers are to be drained; at least one must keep the rows: leave one out");
  }
  for (Channel* server : core_->FirstLanes()) {
    const uint64_t takes = drained.contains(server->server()) ? 0 : 1;
    TRY(SendRequest(server, FrameType::kTakesRows, takes, {}, deadline_).status());
  }
  return Status::Ok();
}

Result<RebalanceInfo> Rebalancer::MoveOne(uint32_t shard, const Owner& to) {
  TRY_ASSIGN(const ShardMap map, Map());
  if (shard >= map.shards()) return InvalidArgument(fmt::format("there is no shard {}", shard));
  const Owner from = map.At(shard).owner;
  if (!core_->connected(from.server)) {
    return Unavailable(
        fmt::format("shard {} is at server {}, which cannot be reached", shard, from.server));
  }
  TRY(Move({shard, from, to, 0}));
  return Finish();
}

Result<RebalanceInfo> Rebalancer::Finish() {
  if (info_.moves == 0) return info_;
  TRY_ASSIGN(const ShardMap map, Map());
  TRY(FaultPoint("ps.rebalance.tell"));
  FrameHeader head;
  head.type = FrameType::kShards;
  TRY(SendRequestToEach(core_->FirstLanes(), head, EncodeShards(map), deadline_));
  return info_;
}

}  // namespace shoal::ps
