#include "ps/client/admin.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "base/json.h"
#include "ps/checkpoint/checkpoint_dir.h"
#include "ps/client/client_core.h"
#include "ps/client/rebalancer.h"

namespace shoal::ps {
namespace {

// The channels to the servers that own rows, and to the leader.
std::vector<Channel*> ChannelsOfOwners(ClientCore* core) {
  std::set<int> owners = OwnersOf(core->router().Known());
  owners.insert(kLeader);
  std::vector<Channel*> all = core->Connected();
  std::erase_if(all, [&](const Channel* channel) { return !owners.contains(channel->server()); });
  return all;
}

constexpr int kCutAttempts = 10;  // while shards move
constexpr Duration kOthersWithin = std::chrono::seconds(2);

// One checkpoint from start to commit; aborts it on destruction unless it was committed.
class Course {
 public:
  Course(ClientCore* core, TimePoint deadline) : core_(core), deadline_(deadline) {
    core->ConnectNamed(deadline);
    lanes_ = ChannelsOfOwners(core);
    for (Channel* lane : lanes_) {
      if (lane->lane() == 0) servers_.push_back(lane);
    }
    const std::set<Channel*> owners(lanes_.begin(), lanes_.end());
    for (Channel* lane : core->Connected()) {
      if (!owners.contains(lane)) others_.push_back(lane);
    }
  }

  // Whether it failed because rows moved while it was cut, so that another one may do.
  bool torn() const { return torn_; }

  Result<CheckpointInfo> Run() {
    auto started =
        SendRequest(&core_->leader(), FrameType::kCheckpointStart, kStartWaits, {}, deadline_);
    if (!started.ok()) Withdraw();
    TRY(started.status());
    TRY(ReadStart(*started));
    if (joined_) return info_;
    auto done = Take();
    if (done.ok()) return done;
    const std::string late = Abort();
    return late.empty() ? done.status() : done.status().With(late);
  }

 private:
  Status ReadStart(std::string_view bytes) {
    ByteReader reader(bytes);
    TRY(reader.Get(&info_.id));
    joined_ = info_.id < 0;
    if (joined_) {
      info_.id = ~info_.id;
      TRY(reader.Get(&info_.bytes));
      return ReadWorkers(&reader);
    }
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
    TRY_ASSIGN(const std::string reply, SendRequest(&core_->leader(), FrameType::kCheckpointCommit,
                                                    0, EncodeManifest(manifest), deadline_));
    ByteReader reader(reply);
    TRY(ReadWorkers(&reader));
    return info_;
  }

  Status ReadWorkers(ByteReader* reader) {
    while (reader->remaining() > 0) {
      int32_t worker = 0;
      TRY(reader->Get(&worker));
      info_.workers.push_back(worker);
    }
    return Status::Ok();
  }

  // The leader may still make it the driver of a checkpoint.
  void Withdraw() {
    FrameHeader head;
    head.type = FrameType::kCheckpointAbort;
    head.argument = kNoCheckpoint;
    Channel& leader = core_->leader();
    if (!leader.up()) return;  // then the server has dropped the request
    (void)leader.FinishCall(leader.StartCall(head, {}, true),
                            RealClock::Get()->Now() + kOthersWithin);
  }

  // Every lane has all the markers, and every worker has settled. After the first error the rest is
  // given up.
  Status Freeze() {
    std::string body;
    ByteWriter writer(&body);
    writer.Put(static_cast<uint32_t>(sessions_.size()));
    for (const uint64_t session : sessions_) writer.Put(session);
    FrameHeader head;
    head.type = FrameType::kCheckpointBegin;
    head.argument = static_cast<uint64_t>(info_.id);
    std::vector<std::shared_ptr<Call>> calls;
    for (Channel* channel : lanes_) calls.push_back(channel->StartCall(head, body, true));
    Status first;
    std::vector<std::string> held;
    for (size_t i = 0; i < calls.size(); ++i) {
      const TimePoint until = first.ok() ? deadline_ : TimePoint{};
      auto reply = lanes_[i]->FinishCall(calls[i], until);
      if (first.ok() && !reply.ok()) first = reply.status();
      if (reply.ok()) held.push_back(std::move(reply).value());
    }
    Release(others_);
    if (first.ok() && !CoversAll(held)) torn_ = true;
    if (torn_) first = Aborted("rows moved from server to server meanwhile");
    return first.With(fmt::format("checkpoint {}: waiting for the workers' markers", info_.id));
  }

  // Every shard is in exactly one lane's cut.
  bool CoversAll(const std::vector<std::string>& held) const {
    const uint32_t shards = core_->router().Known().shards();
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
    for (Channel* server : servers_) calls.push_back(server->StartCall(head, {}, true));
    Status first;
    for (size_t i = 0; i < calls.size(); ++i) {
      const auto reply = servers_[i]->FinishCall(calls[i], first.ok() ? deadline_ : TimePoint{});
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

  // They hold nothing of it, but markers have come there. One that has none yet gets none: all are
  // answered before the leader's lane is frozen.
  void Release(const std::vector<Channel*>& lanes) {
    FrameHeader head;
    head.type = FrameType::kCheckpointAbort;
    head.argument = static_cast<uint64_t>(info_.id);
    const TimePoint soon = std::min(deadline_, RealClock::Get()->Now() + kOthersWithin);
    for (Channel* lane : lanes) {
      // A server that is not reachable has nothing to abort.
      if (lane->lane() != 0 || !lane->up()) continue;
      (void)lane->FinishCall(lane->StartCall(head, {}, true), soon);
    }
  }

  // Says whose markers were missing, if the servers can say.
  std::string Abort() {
    const TimePoint deadline = RealClock::Get()->Now() + std::chrono::seconds(5);
    FrameHeader head;
    head.type = FrameType::kCheckpointAbort;
    head.argument = static_cast<uint64_t>(info_.id);
    // The leader last: it lets the next checkpoint begin.
    for (Channel* server : servers_) {
      if (server->server() == kLeader) continue;
      // A server that is not there has nothing to abort.
      const auto reply = server->FinishCall(server->StartCall(head, {}, true), deadline);
    }
    auto reply = core_->leader().FinishCall(core_->leader().StartCall(head, {}, true), deadline);
    return reply.ok() ? std::move(reply).value() : std::string();
  }

  ClientCore* const core_;
  const TimePoint deadline_;
  std::vector<Channel*> lanes_;    // of the servers that own rows, and of the leader
  std::vector<Channel*> servers_;  // their first lanes
  std::vector<Channel*> others_;   // of servers that own none
  CheckpointInfo info_;
  std::vector<uint64_t> sessions_;
  bool torn_ = false;
  bool joined_ = false;  // another client took the checkpoint that answers this request
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
  return Rebalancer(client_->core_.get(), RealClock::Get()->Now() + timeout).Run(how);
}

Result<RebalanceInfo> Admin::MoveShard(uint32_t shard, int server, uint32_t lane,
                                       Duration timeout) {
  ClientCore& core = *client_->core_;
  const TimePoint deadline = RealClock::Get()->Now() + timeout;
  core.ConnectNamed(deadline);
  if (!core.connected(server) || lane >= core.lanes(server)) {
    return InvalidArgument(fmt::format("lane {} of server {}: there is none", lane, server));
  }
  return Rebalancer(&core, deadline)
      .MoveOne(shard, {static_cast<uint16_t>(server), static_cast<uint16_t>(lane)});
}

Result<std::vector<ServerReport>> Admin::Describe(Duration timeout) {
  ClientCore& core = *client_->core_;
  const TimePoint deadline = RealClock::Get()->Now() + timeout;
  FrameHeader head;
  head.type = FrameType::kDescribe;
  std::vector<std::shared_ptr<Call>> calls;
  core.ConnectNamed(deadline);
  const std::vector<Channel*> lanes = core.Connected();
  for (Channel* channel : lanes) calls.push_back(channel->StartCall(head, {}, false));
  std::vector<ServerReport> servers(static_cast<size_t>(core.servers()));
  Status first;
  for (size_t i = 0; i < calls.size(); ++i) {
    Channel& channel = *lanes[i];
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

void Admin::Cancel() { client_->core_->Cancel(); }

Status Admin::ReportDead(int worker, Duration timeout) {
  if (worker < 0) return InvalidArgument("worker: expected 0 or more");
  ClientCore& core = *client_->core_;
  return SendRequest(&core.leader(), FrameType::kReportDead, static_cast<uint64_t>(worker), {},
                     RealClock::Get()->Now() + timeout)
      .status();
}

}  // namespace shoal::ps
