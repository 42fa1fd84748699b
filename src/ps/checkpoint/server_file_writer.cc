#include "ps/checkpoint/server_file_writer.h"

#include <fmt/format.h>

#include <optional>

#include "ps/storage/table.h"

namespace shoal::ps {
namespace {

constexpr size_t kRecordBytes = 256u << 10;  // of rows: a write call each

Status GivenUp(int64_t id) { return Aborted(fmt::format("checkpoint {} was given up", id)); }

}  // namespace

// One file under way.
struct ServerFileWriter::Job {
  CheckpointWriter writer;
  const WrittenCheckpoint* base;  // whose file this one continues; null: it is whole
  WrittenCheckpoint now;
  std::set<uint32_t> described = {};  // tables
  SavedRows rows = {};
};

Result<CheckpointFile> ServerFileWriter::Write(int64_t id, uint64_t ownership) {
  // Server 0 has made the directory; where it is missing, the checkpoint was given up or is not
  // shared.
  const auto directory = CheckpointPath(context_->options.checkpoint_dir, id);
  TRY_ASSIGN(const std::vector<CutInterval> cut_intervals, FrozenCutIntervals(id));
  TRY_ASSIGN(const WrittenCheckpoint* base, ChooseBase(id, ownership, cut_intervals));
  WrittenCheckpoint now;
  now.id = id;
  now.file.name = CheckpointFileName(context_->options.index);
  now.ownership = ownership;
  now.cut_intervals = cut_intervals;
  CheckpointHead head{id};
  if (base != nullptr) {
    now.file.base = head.base = base->id;
    head.base_crc = base->file.crc;
  }
  TRY_ASSIGN(CheckpointWriter file, CheckpointWriter::Create(directory / now.file.name, head));
  Job job{std::move(file), base, std::move(now)};
  TRY(WriteTables(&job));
  TRY(WriteBlobs(&job));
  TRY(job.writer.Commit());
  for (auto& lane : context_->lanes) {
    Lane::Guard guard(*lane);
    lane->EndCheckpoint(id, Status::Ok());
  }
  WrittenCheckpoint& done = job.now;
  done.file.bytes = job.writer.bytes();
  done.file.crc = job.writer.crc();
  done.deltas = base == nullptr ? 0 : base->deltas + 1;
  done.whole_bytes = base == nullptr ? done.file.bytes : base->whole_bytes;
  done.delta_bytes = base == nullptr ? 0 : base->delta_bytes + done.file.bytes;
  const CheckpointFile written = done.file;
  chain_.RecordWritten(std::move(done));
  return written;
}

Result<std::vector<CutInterval>> ServerFileWriter::FrozenCutIntervals(int64_t id) {
  std::vector<CutInterval> cut_intervals;
  for (auto& lane : context_->lanes) {
    Lane::Guard guard(*lane);
    if (!lane->FrozenFor(id)) return GivenUp(id);
    cut_intervals.push_back(lane->cut_interval());
  }
  return cut_intervals;
}

// Null: the file is to be whole.
Result<const WrittenCheckpoint*> ServerFileWriter::ChooseBase(
    int64_t id, uint64_t ownership, const std::vector<CutInterval>& cut_intervals) {
  const WrittenCheckpoint* base = chain_.Base(ownership, cut_intervals);
  if (base == nullptr) return base;
  TRY_ASSIGN(const uint64_t bytes, BytesSince(id, *base));
  return chain_.WorthContinuing(*base, bytes) ? base : nullptr;
}

// About what a file that continues `base` would have for rows.
Result<uint64_t> ServerFileWriter::BytesSince(int64_t id, const WrittenCheckpoint& base) {
  uint64_t bytes = 0;
  for (uint32_t lane = 0; lane < context_->lane_count(); ++lane) {
    Lane::Guard guard(context_->lane(lane));
    if (!context_->lane(lane).FrozenFor(id)) return GivenUp(id);
    for (const auto& [table_id, table] : context_->lane(lane).tables()) {
      bytes += table->CountChanged(base.cut_intervals[lane].number) *
               (sizeof(Key) + table->saved_floats() * sizeof(float));
    }
  }
  return bytes;
}

Status ServerFileWriter::WriteTables(Job* job) {
  for (uint32_t lane = 0; lane < context_->lane_count(); ++lane) {
    std::vector<std::pair<uint32_t, TableSpec>> tables;
    {
      Lane::Guard guard(context_->lane(lane));
      if (!context_->lane(lane).FrozenFor(job->now.id)) return GivenUp(job->now.id);
      for (const auto& [table_id, table] : context_->lane(lane).tables()) {
        tables.emplace_back(table_id, table->spec());
      }
    }
    for (const auto& [table_id, spec] : tables) {
      if (job->described.insert(table_id).second) TRY(job->writer.Table(spec));
      TRY(WriteOneTable(job, lane, table_id));
    }
  }
  return Status::Ok();
}

// Takes the lock for one block at a time, a few microseconds each, so that training goes on.
Status ServerFileWriter::WriteOneTable(Job* job, uint32_t lane_index, uint32_t table_id) {
  Lane& lane = context_->lane(lane_index);
  std::optional<uint8_t> after;
  if (job->base != nullptr) after = job->base->cut_intervals[lane_index].number;
  SavedRows& rows = job->rows;
  size_t saved_floats = 0;
  const auto flush = [&]() -> Status {
    if (!rows.keys.empty()) {
      TRY(job->writer.Rows(table_id, saved_floats, rows.keys, rows.floats));
    }
    rows.clear();
    return Status::Ok();
  };
  rows.clear();
  for (uint32_t shard = 0; shard < context_->partition.shards(); ++shard) {
    for (size_t block = 0;; ++block) {
      {
        Lane::Guard guard(lane);
        // An abort ends the snapshot under the same lock: what is no longer frozen is not read.
        if (context_->stopped || !lane.FrozenFor(job->now.id)) return GivenUp(job->now.id);
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
Status ServerFileWriter::WriteBlobs(Job* job) {
  std::map<std::string, BlobStore::Content> blobs;
  std::map<int, std::string> progress;
  {
    Lane::Guard guard(context_->first_lane());
    blobs = blobs_->All();
    progress = *progress_;
  }
  for (const auto& [worker, bytes] : progress) TRY(job->writer.Progress(worker, bytes));
  std::vector<std::string> names;
  for (const auto& [name, content] : blobs) {
    names.push_back(name);
    job->now.blobs.emplace(name, content);
    if (job->base != nullptr) {
      const auto before = job->base->blobs.find(name);
      if (before != job->base->blobs.end() && before->second.lock() == content) continue;
    }
    TRY(job->writer.Blob(name, *content));
  }
  return job->base == nullptr ? Status::Ok() : job->writer.BlobNames(names);
}

}  // namespace shoal::ps
