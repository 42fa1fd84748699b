#include "ps/admin.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/json.h"
#include "ps/checkpoint_dir.h"
#include "ps/client_core.h"

namespace shoal::ps {
namespace {

// One checkpoint's course; undone unless it was committed.
class Course {
 public:
  Course(ClientCore* core, TimePoint deadline) : core_(core), deadline_(deadline) {}

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
    for (size_t i = 0; i < calls.size(); ++i) {
      const TimePoint until = first.ok() ? deadline_ : TimePoint{};
      const auto reply = core_->channels()[i]->FinishCall(calls[i], until);
      if (first.ok() && !reply.ok()) first = reply.status();
    }
    return first.With(fmt::format("checkpoint {}: waiting for the workers' markers", info_.id));
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
};

}  // namespace

Result<std::unique_ptr<Admin>> Admin::Connect(ClientOptions options, Members* members) {
  options.index = kObserver;
  TRY_ASSIGN(auto client, Client::Connect(std::move(options), members));
  return std::unique_ptr<Admin>(new Admin(std::move(client)));
}

Result<CheckpointInfo> Admin::Checkpoint(Duration timeout) {
  return Course(client_->core_.get(), RealClock::Get()->Now() + timeout).Run();
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
