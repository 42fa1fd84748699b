#include "ps/admin.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/json.h"
#include "ps/checkpoint_dir.h"
#include "ps/client_core.h"
#include "ps/shard_map.h"

namespace shoal::ps {
namespace {

constexpr int kCutAttempts = 10;  // while shards move

// One checkpoint's course; undone unless it was committed.
class Course {
 public:
  Course(ClientCore* core, TimePoint deadline) : core_(core), deadline_(deadline) {}

  // Whether it failed because rows moved while it was cut, so that another one may do.
  bool torn() const { return torn_; }

  Result<CheckpointInfo> Run() {
    TRY_ASSIGN(const std::string started,
               core_->Ask(&core_->leader(), FrameType::kCheckpointStart, 0, {}, deadline_));
    TRY(ReadStart(started));
    auto done = Take();
    if (done.ok()) return done;
    const std::string late = Abort();
    return late.empty() ? done.status() : done.status().With(late);
  }

 private:
  Status ReadStart(std::string_view bytes) {
    ByteReader reader(bytes);
    TRY(reader.Get(&info_.id));
    while (reader.remaining() > 0) {
      uint64_t session = 0;
      int32_t worker = 0;
      TRY(reader.Get(&session));
      TRY(reader.Get(&worker));
      sessions_.push_back(session);
    }
    return Status::Ok();
  }

  Result<CheckpointInfo> Take() {
    TRY(Freeze());
    Manifest manifest;
    manifest.checkpoint = info_.id;
    TRY(Write(&manifest));
    TRY_ASSIGN(const std::string reply, core_->Ask(&core_->leader(), FrameType::kCheckpointCommit,
                                                   0, EncodeManifest(manifest), deadline_));
    ByteReader reader(reply);
    while (reader.remaining() > 0) {
      int32_t worker = 0;
      TRY(reader.Get(&worker));
      info_.workers.push_back(worker);
    }
    return info_;
  }

  // Every lane of every server has all the markers. After the first error the rest is given up.
  Status Freeze() {
    std::string body;
    ByteWriter writer(&body);
    writer.Put(static_cast<uint32_t>(sessions_.size()));
    for (const uint64_t session : sessions_) writer.Put(session);
    FrameHeader head;
    head.type = FrameType::kCheckpointBegin;
    head.argument = static_cast<uint64_t>(info_.id);
    std::vector<std::shared_ptr<Call>> calls;
    for (auto& channel : core_->channels()) calls.push_back(channel->StartCall(head, body, true));
    Status first;
    std::vector<std::string> held;
    for (size_t i = 0; i < calls.size(); ++i) {
      const TimePoint until = first.ok() ? deadline_ : TimePoint{};
      auto reply = core_->channels()[i]->FinishCall(calls[i], until);
      if (first.ok() && !reply.ok()) first = reply.status();
      if (reply.ok()) held.push_back(std::move(reply).value());
    }
    if (first.ok() && !CoversAll(held)) {
      torn_ = true;
      first = Aborted("rows moved from server to server meanwhile");
    }
    return first.With(fmt::format("checkpoint {}: waiting for the workers' markers", info_.id));
  }

  // Every shard is in exactly one lane's cut.
  bool CoversAll(const std::vector<std::string>& held) const {
    const uint32_t shards = core_->known_shards().shards();
    std::vector<int> times(shards);
    for (const std::string& bits : held) {
      if (bits.size() != (shards + 7) / 8) return false;
      for (uint32_t shard = 0; shard < shards; ++shard) {
        times[shard] += bits[shard / 8] >> shard % 8 & 1;
      }
    }
    return std::all_of(times.begin(), times.end(), [](int n) { return n == 1; });
  }

  Status Write(Manifest* manifest) {
    FrameHeader head;
    head.type = FrameType::kCheckpointWrite;
    head.argument = static_cast<uint64_t>(info_.id);
    std::vector<std::shared_ptr<Call>> calls;
    for (int server = 0; server < core_->servers(); ++server) {
      calls.push_back(core_->channel(server).StartCall(head, {}, true));
    }
    Status first;
    for (int server = 0; server < core_->servers(); ++server) {
      const auto reply = core_->channel(server).FinishCall(calls[static_cast<size_t>(server)],
                                                           first.ok() ? deadline_ : TimePoint{});
      if (first.ok()) first = reply.ok() ? AddFile(*reply, manifest) : reply.status();
    }
    return first.With(fmt::format("checkpoint {}: writing", info_.id));
  }

  Status AddFile(std::string_view reply, Manifest* manifest) {
    TRY_ASSIGN(const json::object object, ParseJsonObject(reply));
    CheckpointFile file;
    TRY_ASSIGN(file.name, GetString(object, "name"));
    TRY_ASSIGN(const int64_t bytes, GetInt(object, "bytes"));
    TRY_ASSIGN(const int64_t crc, GetInt(object, "crc32c"));
    file.bytes = static_cast<uint64_t>(bytes);
    file.crc = static_cast<uint32_t>(crc);
    file.base = GetIntOr(object, "base", -1);
    info_.bytes += file.bytes;
    manifest->files.push_back(std::move(file));
    return Status::Ok();
  }

  // Says whose markers were missing, if the servers can say.
  std::string Abort() {
    const TimePoint deadline = RealClock::Get()->Now() + std::chrono::seconds(5);
    FrameHeader head;
    head.type = FrameType::kCheckpointAbort;
    head.argument = static_cast<uint64_t>(info_.id);
    std::vector<std::shared_ptr<Call>> calls;
    // Server 0 last: it lets the next checkpoint begin.
    for (int server = core_->servers() - 1; server >= 0; --server) {
      const auto call = core_->channel(server).StartCall(head, {}, true);
      // A server that is not there has nothing to abort.
      auto reply = core_->channel(server).FinishCall(call, deadline);
      if (server == 0 && reply.ok()) return std::move(reply).value();
    }
    return {};
  }

  ClientCore* const core_;
  const TimePoint deadline_;
  CheckpointInfo info_;
  std::vector<uint64_t> sessions_;
  bool torn_ = false;
};

// Who owns what and what it weighs, and the moves that follow from it.
class Balancer {
 public:
  Balancer(ClientCore* core, TimePoint deadline) : core_(core), deadline_(deadline) {}

  Result<RebalanceInfo> Run(const Admin::Rebalance& how) {
    std::vector<uint32_t> lanes;
    for (int server = 0; server < core_->servers(); ++server) lanes.push_back(core_->lanes(server));
    for (const int server : how.drain) {
      if (server < 0 || server >= core_->servers()) {
        return InvalidArgument(fmt::format("server {} of {}", server, core_->servers()));
      }
      lanes[static_cast<size_t>(server)] = 0;
    }
    if (std::count(lanes.begin(), lanes.end(), 0u) == core_->servers()) {
      return InvalidArgument("somebody has to hold the rows: leave one server out");
    }
    TRY_ASSIGN(const std::vector<ShardLoad> loads, Weigh());
    info_.before.resize(lanes.size());
    for (const ShardLoad& load : loads) info_.before[load.owner.server] += load.bytes;
    info_.after = info_.before;
    for (const ShardMove& move : PlanMoves(loads, lanes, how.tolerance)) {
      TRY(Move(move.shard, move.from.server, move.to));
      info_.after[move.from.server] -= move.bytes;
      info_.after[move.to.server] += move.bytes;
    }
    return Finish();
  }

  Result<RebalanceInfo> MoveOne(uint32_t shard, const Owner& to) {
    TRY_ASSIGN(const ShardMap map, Map());
    if (shard >= map.shards()) return InvalidArgument(fmt::format("there is no shard {}", shard));
    TRY(Move(shard, map.At(shard).owner.server, to));
    return Finish();
  }

 private:
  Result<ShardMap> Map() {
    ShardMap map = core_->known_shards();
    for (int server = 0; server < core_->servers(); ++server) {
      TRY_ASSIGN(const std::string reply,
                 core_->Ask(&core_->channel(server), FrameType::kShards, 0, {}, deadline_));
      ShardMap theirs;
      TRY(DecodeShards(reply, map.shards(), &theirs));
      map.Merge(theirs);
    }
    return map;
  }

  Result<std::vector<ShardLoad>> Weigh() {
    std::vector<ShardLoad> loads;
    for (const auto& channel : core_->channels()) {
      TRY_ASSIGN(const std::string reply,
                 core_->Ask(channel.get(), FrameType::kShardBytes, 0, {}, deadline_));
      ByteReader reader(reply);
      while (reader.remaining() > 0) {
        ShardLoad load;
        TRY(reader.Get(&load.shard));
        TRY(reader.Get(&load.bytes));
        load.owner = {static_cast<uint16_t>(channel->server()),
                      static_cast<uint16_t>(channel->lane())};
        loads.push_back(load);
      }
    }
    return loads;
  }

  Status Move(uint32_t shard, int from, const Owner& to) {
    std::string body;
    ByteWriter writer(&body);
    writer.Put(shard);
    writer.Put(to.server);
    writer.Put(to.lane);
    TRY_ASSIGN(const std::string reply, core_->Ask(&core_->channel(from), FrameType::kMoveShard, 0,
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

  // Servers that had no part in it are told, too: one that starts again asks them.
  Result<RebalanceInfo> Finish() {
    if (info_.moves == 0) return info_;
    TRY_ASSIGN(const ShardMap map, Map());
    TRY(core_->AskFirstLanes(FrameType::kShards, EncodeShards(map), deadline_));
    return info_;
  }

  ClientCore* const core_;
  const TimePoint deadline_;
  RebalanceInfo info_;
};

}  // namespace

Result<std::unique_ptr<Admin>> Admin::Connect(ClientOptions options, Members* members) {
  options.index = kObserver;
  TRY_ASSIGN(auto client, Client::Connect(std::move(options), members));
  return std::unique_ptr<Admin>(new Admin(std::move(client)));
}

Result<CheckpointInfo> Admin::Checkpoint(Duration timeout) {
  const TimePoint deadline = RealClock::Get()->Now() + timeout;
  for (int attempt = 1;; ++attempt) {
    Course course(client_->core_.get(), deadline);
    auto done = course.Run();
    if (done.ok() || !course.torn() || attempt == kCutAttempts) return done;
  }
}

Result<RebalanceInfo> Admin::RebalanceShards(const Rebalance& how, Duration timeout) {
  return Balancer(client_->core_.get(), RealClock::Get()->Now() + timeout).Run(how);
}

Result<RebalanceInfo> Admin::MoveShard(uint32_t shard, int server, uint32_t lane,
                                       Duration timeout) {
  ClientCore& core = *client_->core_;
  if (server < 0 || server >= core.servers() || lane >= core.lanes(server)) {
    return InvalidArgument(fmt::format("lane {} of server {}: there is none", lane, server));
  }
  return Balancer(&core, RealClock::Get()->Now() + timeout)
      .MoveOne(shard, {static_cast<uint16_t>(server), static_cast<uint16_t>(lane)});
}

Result<std::vector<ServerReport>> Admin::Describe(Duration timeout) {
  ClientCore& core = *client_->core_;
  const TimePoint deadline = RealClock::Get()->Now() + timeout;
  FrameHeader head;
  head.type = FrameType::kDescribe;
  std::vector<std::shared_ptr<Call>> calls;
  for (auto& channel : core.channels()) calls.push_back(channel->StartCall(head, {}, false));
  std::vector<ServerReport> servers(static_cast<size_t>(core.servers()));
  Status first;
  for (size_t i = 0; i < calls.size(); ++i) {
    Channel& channel = *core.channels()[i];
    const auto reply = channel.FinishCall(calls[i], first.ok() ? deadline : TimePoint{});
    ServerReport lane;
    const Status status = reply.ok() ? DecodeReport(*reply, &lane) : reply.status();
    if (first.ok()) first = status;
    if (!status.ok()) continue;
    ServerReport& server = servers[static_cast<size_t>(channel.server())];
    server.server = channel.server();
    AddReport(lane, &server);
  }
  TRY(first.With("asking the servers for their tables"));
  return servers;
}

Status Admin::ReportDead(int worker, Duration timeout) {
  if (worker < 0) return InvalidArgument("worker: expected 0 or more");
  ClientCore& core = *client_->core_;
  return core
      .Ask(&core.leader(), FrameType::kReportDead, static_cast<uint64_t>(worker), {},
           RealClock::Get()->Now() + timeout)
      .status();
}

}  // namespace shoal::ps
