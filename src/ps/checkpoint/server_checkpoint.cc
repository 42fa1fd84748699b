// A server's part in a checkpoint: asking for markers, freezing, writing, committing
// (docs/design/checkpoint.md tells the whole course).
#include <fmt/format.h>

#include <algorithm>

#include "base/fault_injection.h"
#include "base/json.h"
#include "base/log.h"
#include "ps/checkpoint/checkpoint_file.h"
#include "ps/server/server_core.h"
#include "ps/storage/table.h"

namespace shoal::ps {
namespace {

constexpr uint32_t kMaxSessions = 1u << 20;
constexpr size_t kRecordBytes = 256u << 10;  // of rows: a write call each

Status GivenUp(int64_t id) { return Aborted(fmt::format("checkpoint {} was given up", id)); }

}  // namespace

struct ServerCore::Writing {
  CheckpointWriter writer;
  const WrittenCheckpoint* base;  // whose file this one continues; null: it is whole
  WrittenCheckpoint now;
  std::set<uint32_t> described = {};  // tables
  SavedRows rows = {};
};

// Answers with the id and the sessions whose markers make the cut; until it is frozen or aborted
// nobody else joins, so that all servers agree on who takes part.
Status ServerCore::CheckpointStart(Request* request) {
  if (options_.checkpoint_dir.empty()) {
    return FailedPrecondition("this server was started without a checkpoint directory");
  }
  if (checkpoint_ >= 0 && checkpoint_owner_ == request->from.session) {
    AbortCheckpoint(checkpoint_, Aborted("its driver asked anew"));  // it missed the first answer
  }
  if (checkpoint_ >= 0) {
    return FailedPrecondition(fmt::format("checkpoint {} is being taken", checkpoint_));
  }
  TRY_ASSIGN(const int64_t id, checkpoint_ids_.NextId(restored_));
  TRY(MakeDirectories(CheckpointPath(options_.checkpoint_dir, id), 0700));
  checkpoint_ = id;
  checkpoint_began_ = options_.clock->Now();
  checkpoint_owner_ = request->from.session;
  awaiting_markers_ = true;
  must_send_marker_.clear();
  marker_progress_.clear();

  std::string reply;
  ByteWriter writer(&reply);
  writer.Put(id);
  for (const auto& [session_id, session] : lanes_[0]->sessions()) {
    if (session.client < 0 || session.left || session.dead) continue;
    must_send_marker_.insert(session_id);
    writer.Put(session_id);
    writer.Put(int32_t{session.client});
  }
  request->answer(Status::Ok(), reply);
  return Status::Ok();
}

// To every lane of every server. Answered when the lane is frozen.
Status ServerCore::CheckpointBegin(Request* request) {
  ByteReader reader(request->body);
  uint32_t count = 0;
  TRY(reader.Get(&count));
  if (count > kMaxSessions) return InvalidArgument("a checkpoint names too many sessions");
  std::set<uint64_t> required;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t session = 0;
    TRY(reader.Get(&session));
    required.insert(session);
  }
  const auto id = static_cast<int64_t>(request->head.argument);
  const bool leader = is_leader() && request->from.lane == 0;
  if (leader && id != checkpoint_) {
    return Aborted(fmt::format("checkpoint {} is not being taken here", id));
  }
  Answer answer = std::move(request->answer);
  if (leader) {
    RequestMarkers(required, id);
    answer = [this, id, answer = std::move(answer)](const Status& status, std::string_view body) {
      OnFrozen(id, status);
      answer(status, body);
    };
  }
  lanes_[request->from.lane]->BeginCheckpoint(id, std::move(required), leader, std::move(answer));
  return Status::Ok();
}

// Whether the checkpoint that is being cut waits for a session of this worker.
bool ServerCore::MustSendMarker(int worker) const {
  return std::any_of(must_send_marker_.begin(), must_send_marker_.end(), [&](uint64_t id) {
    const Session* session = lanes_[0]->FindSession(id);
    return session != nullptr && session->client == worker;
  });
}

void ServerCore::RequestMarkers(const std::set<uint64_t>& sessions, int64_t id) {
  for (const uint64_t session_id : sessions) {
    const Session* session = lanes_[0]->FindSession(session_id);
    auto peer = session == nullptr ? nullptr : session->peer.lock();
    if (peer == nullptr) continue;
    FrameHeader head;
    head.type = FrameType::kMarkerRequest;
    head.id = static_cast<uint64_t>(id);
    peer->Reply(head, {});
    lanes_[0]->QueueFlush(std::move(peer));
  }
}

void ServerCore::OnFrozen(int64_t id, const Status& status) {
  if (id != checkpoint_) return;
  awaiting_markers_ = false;
  if (!status.ok()) return;
  cut_progress_ = progress_;
  for (const auto& [worker, bytes] : marker_progress_) cut_progress_[worker] = bytes;
}

void ServerCore::AbortCheckpoint(int64_t id, const Status& why) {
  lanes_[0]->EndCheckpoint(id, why);
  for (uint32_t lane = 1; lane < lanes(); ++lane) {
    Lane::Guard guard(*lanes_[lane], lanes_[0]->to_flush());
    lanes_[lane]->EndCheckpoint(id, why);
  }
  if (!is_leader() || checkpoint_ != id) return;
  checkpoint_ = -1;
  awaiting_markers_ = false;
  must_send_marker_.clear();
  WhenIdle([this, id] { RemoveUncommitted(options_.checkpoint_dir, id); });
}

// Under the first lane's lock, at once or when the checkpoint thread has ended what it does: nobody
// writes into a directory that is being removed.
void ServerCore::WhenIdle(std::function<void()> then) {
  {
    std::lock_guard lock(work_mu_);
    if (working_) return after_work_.push_back(std::move(then));
  }
  then();
}

// Answered when this server's file is durable.
Status ServerCore::CheckpointWrite(Request* request) {
  if (options_.checkpoint_dir.empty()) {
    return FailedPrecondition(
        fmt::format("server {} was started without a checkpoint directory", options_.index));
  }
  const auto id = static_cast<int64_t>(request->head.argument);
  return RunInBackground([this, id] { return WriteCheckpoint(id); }, std::move(request->answer));
}

// To server 0, with the manifest; answered when the checkpoint is committed.
Status ServerCore::CheckpointCommit(Request* request) {
  TRY_ASSIGN(Manifest manifest, DecodeManifest(request->body));
  if (manifest.checkpoint != checkpoint_) {
    return Aborted(fmt::format("checkpoint {} is not being taken here", manifest.checkpoint));
  }
  for (const auto& [worker, bytes] : cut_progress_) manifest.workers.push_back(worker);
  return RunInBackground(
      [this, manifest = std::move(manifest)]() -> Result<std::string> {
        TRY(FaultPoint("ps.checkpoint.commit"));
        TRY(CommitManifest(options_.checkpoint_dir, manifest,
                           {options_.keep_checkpoints, damaged_}));
        Lane::Guard guard(*lanes_[0]);
        committed_ = manifest.checkpoint;
        if (checkpoint_ == manifest.checkpoint) checkpoint_ = -1;
        std::string reply;
        ByteWriter writer(&reply);
        for (const int worker : manifest.workers) writer.Put(int32_t{worker});
        return reply;
      },
      std::move(request->answer));
}

Status ServerCore::RunInBackground(std::function<Result<std::string>()> work, Answer answer) {
  std::lock_guard lock(work_mu_);
  if (stopped_) return Unavailable(fmt::format("server {} stopped", options_.index));
  if (working_) {
    return FailedPrecondition(fmt::format("server {} still writes a checkpoint", options_.index));
  }
  work_ = std::move(work);
  work_answer_ = std::move(answer);
  working_ = true;
  if (!worker_.joinable()) worker_ = std::thread([this] { RunCheckpointThread(); });
  work_cv_.notify_all();
  return Status::Ok();
}

void ServerCore::RunCheckpointThread() {
  for (;;) {
    std::function<Result<std::string>()> work;
    Answer answer;
    {
      std::unique_lock lock(work_mu_);
      work_cv_.wait(lock, [this] { return stopped_ || work_ != nullptr; });
      if (stopped_) return;
      work = std::move(work_);
      answer = std::move(work_answer_);
      work_ = nullptr;
    }
    const Result<std::string> done = work();
    Lane::Guard guard(*lanes_[0]);
    std::vector<std::function<void()>> after;
    {
      std::lock_guard lock(work_mu_);
      working_ = false;
      after.swap(after_work_);
    }
    for (const auto& then : after) then();
    answer(done.status(), done.ok() ? std::string_view(*done) : std::string_view());
  }
}

Result<std::string> ServerCore::WriteCheckpoint(int64_t id) {
  const TimePoint begin = options_.clock->Now();
  auto written = WriteFile(id);
  const TimePoint end = options_.clock->Now();
  Lane::Guard guard(*lanes_[0]);
  if (!written.ok()) {
    ++checkpoint_metrics_.failed;
    return written;
  }
  ++checkpoint_metrics_.written;
  checkpoint_metrics_.last = id;
  checkpoint_metrics_.seconds = std::chrono::duration<double>(end - begin).count();
  checkpoint_written_ = end;
  return written;
}

Result<std::string> ServerCore::WriteFile(int64_t id) {
  // Server 0 has made the directory; where it is missing, the checkpoint was given up or is not
  // shared.
  const auto directory = CheckpointPath(options_.checkpoint_dir, id);
  TRY_ASSIGN(const std::vector<CutInterval> cut_intervals, FrozenCutIntervals(id));
  TRY_ASSIGN(const WrittenCheckpoint* base, ChooseBase(id, cut_intervals));
  WrittenCheckpoint now;
  now.id = id;
  now.file.name = CheckpointFileName(options_.index);
  now.ownership = owned_version_;
  now.cut_intervals = cut_intervals;
  CheckpointHead head{id};
  if (base != nullptr) {
    now.file.base = head.base = base->id;
    head.base_crc = base->file.crc;
  }
  TRY_ASSIGN(CheckpointWriter file, CheckpointWriter::Create(directory / now.file.name, head));
  Writing writing{std::move(file), base, std::move(now)};
  TRY(WriteTables(&writing));
  TRY(WriteBlobs(&writing));
  TRY(writing.writer.Commit());
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    lane->EndCheckpoint(id, Status::Ok());
  }
  WrittenCheckpoint& done = writing.now;
  done.file.bytes = writing.writer.bytes();
  done.file.crc = writing.writer.crc();
  done.deltas = base == nullptr ? 0 : base->deltas + 1;
  done.whole_bytes = base == nullptr ? done.file.bytes : base->whole_bytes;
  done.delta_bytes = base == nullptr ? 0 : base->delta_bytes + done.file.bytes;
  json::object reply = {
      {"name", done.file.name}, {"bytes", done.file.bytes}, {"crc32c", done.file.crc}};
  if (base != nullptr) reply["base"] = done.file.base;
  {
    Lane::Guard guard(*lanes_[0]);
    checkpoint_metrics_.bytes = done.file.bytes;
    checkpoint_metrics_.continues = base != nullptr;
  }
  chain_.RecordWritten(std::move(done));
  return ToText(reply);
}

Result<std::vector<CutInterval>> ServerCore::FrozenCutIntervals(int64_t id) {
  std::vector<CutInterval> cut_intervals;
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    if (!lane->FrozenFor(id)) return GivenUp(id);
    cut_intervals.push_back(lane->cut_interval());
  }
  return cut_intervals;
}

// Null: the file is to be whole.
Result<const WrittenCheckpoint*> ServerCore::ChooseBase(
    int64_t id, const std::vector<CutInterval>& cut_intervals) {
  const WrittenCheckpoint* base = chain_.Base(owned_version_, cut_intervals);
  if (base == nullptr) return base;
  TRY_ASSIGN(const uint64_t bytes, BytesSince(id, *base));
  return chain_.WorthContinuing(*base, bytes) ? base : nullptr;
}

// About what a file that continues `base` would have for rows.
Result<uint64_t> ServerCore::BytesSince(int64_t id, const WrittenCheckpoint& base) {
  uint64_t bytes = 0;
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    Lane::Guard guard(*lanes_[lane]);
    if (!lanes_[lane]->FrozenFor(id)) return GivenUp(id);
    for (const auto& [table_id, table] : lanes_[lane]->tables()) {
      bytes += table->CountChanged(base.cut_intervals[lane].number) *
               (sizeof(Key) + table->saved_floats() * sizeof(float));
    }
  }
  return bytes;
}

Status ServerCore::WriteTables(Writing* writing) {
  for (uint32_t lane = 0; lane < lanes(); ++lane) {
    std::vector<std::pair<uint32_t, TableSpec>> tables;
    {
      Lane::Guard guard(*lanes_[lane]);
      if (!lanes_[lane]->FrozenFor(writing->now.id)) return GivenUp(writing->now.id);
      for (const auto& [table_id, table] : lanes_[lane]->tables()) {
        tables.emplace_back(table_id, table->spec());
      }
    }
    for (const auto& [table_id, spec] : tables) {
      if (writing->described.insert(table_id).second) TRY(writing->writer.Table(spec));
      TRY(WriteOneTable(writing, lane, table_id));
    }
  }
  return Status::Ok();
}

// Takes the lock for one block at a time, a few microseconds each, so that training goes on.
Status ServerCore::WriteOneTable(Writing* writing, uint32_t lane_index, uint32_t table_id) {
  Lane& lane = *lanes_[lane_index];
  std::optional<uint8_t> after;
  if (writing->base != nullptr) after = writing->base->cut_intervals[lane_index].number;
  SavedRows& rows = writing->rows;
  size_t saved_floats = 0;
  const auto flush = [&]() -> Status {
    if (!rows.keys.empty()) {
      TRY(writing->writer.Rows(table_id, saved_floats, rows.keys, rows.floats));
    }
    rows.clear();
    return Status::Ok();
  };
  rows.clear();
  for (uint32_t shard = 0; shard < partition_.shards(); ++shard) {
    for (size_t block = 0;; ++block) {
      {
        Lane::Guard guard(lane);
        // An abort ends the snapshot under the same lock: what is no longer frozen is not read.
        if (stopped_ || !lane.FrozenFor(writing->now.id)) return GivenUp(writing->now.id);
        Table* table = lane.FindTable(table_id);
        if (block >= table->SnapshotBlocks(shard)) break;
        table->TakeSnapshotBlock(shard, block, after, &rows);
        saved_floats = table->saved_floats();
      }
      if (rows.floats.size() * sizeof(float) >= kRecordBytes) TRY(flush());
    }
  }
  return flush();
}

// Progress, all of it, and blobs: those that the base has not, and the names of all.
Status ServerCore::WriteBlobs(Writing* writing) {
  std::map<std::string, BlobStore::Content> blobs;
  std::map<int, std::string> progress;
  {
    Lane::Guard guard(*lanes_[0]);
    blobs = blobs_.All();
    progress = cut_progress_;
  }
  for (const auto& [worker, bytes] : progress) TRY(writing->writer.Progress(worker, bytes));
  std::vector<std::string> names;
  for (const auto& [name, content] : blobs) {
    names.push_back(name);
    writing->now.blobs.emplace(name, content);
    if (writing->base != nullptr) {
      const auto before = writing->base->blobs.find(name);
      if (before != writing->base->blobs.end() && before->second.lock() == content) continue;
    }
    TRY(writing->writer.Blob(name, *content));
  }
  return writing->base == nullptr ? Status::Ok() : writing->writer.BlobNames(names);
}

}  // namespace shoal::ps
