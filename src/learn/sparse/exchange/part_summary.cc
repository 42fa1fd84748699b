#include "learn/sparse/exchange/part_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>

#include "base/bytes.h"
#include "base/clock.h"
#include "data/examples/classes.h"
#include "data/examples/examples.h"
#include "learn/coordination/shared_blobs.h"
#include "learn/sparse/dataset.h"
#include "learn/sparse/worker.h"

namespace shoal::learn::sparse {
namespace {

// Of checkpoints of earlier releases: 1 had no columns, 2 no counts, 3 no blocks.
constexpr uint32_t kVersion = 4;
constexpr uint32_t kMaxRanges = 1024;
constexpr uint32_t kMaxPartClasses = 4096;
constexpr const char* kPrefix = "share/";
constexpr auto kPoll = std::chrono::milliseconds(2);
constexpr auto kSlowPoll = std::chrono::milliseconds(50);

std::string NameOf(int worker) { return kPrefix + std::to_string(worker); }

std::string Text(const data::ShardBoundary& place) {
  return fmt::format("byte {} of file {}", place.position, place.file + 1);
}

// The same but for what was agreed on since.
bool SameData(PartSummary a, const PartSummary& b) {
  a.extent = b.extent;
  if (a.class_counts.empty()) a.class_counts = b.class_counts;  // of an earlier release
  return a == b;
}

Status CheckSummaryUnchanged(const WorkerSetup& setup) {
  const std::string name = NameOf(setup.index);
  const Result<std::string> bytes = setup.client->GetBlob(name);
  if (bytes.status().code() == Code::kNotFound) return Status::Ok();
  TRY(bytes.status());
  TRY_ASSIGN(const PartSummary before, DecodePartSummary(*bytes, name));
  const PartSummary& now = setup.share;
  if (SameData(before, now)) return Status::Ok();
  if (before.parts != now.parts) {
    return FailedPrecondition(
        fmt::format("worker {} goes on from a training by {} workers, got {}; run the job with as "
                    "many as before, or anew",
                    setup.index, before.parts, now.parts));
  }
  return FailedPrecondition(fmt::format(
      "the data has changed since worker {} began: part {} of {} had {} examples and has {}; run "
      "the job anew",
      setup.index, now.part, now.parts, before.examples, now.examples));
}

// Of every worker, or nothing as long as one is missing.
Result<std::optional<std::vector<PartSummary>>> ReadPartSummaries(const WorkerSetup& setup) {
  std::optional<std::vector<PartSummary>> none;
  TRY_ASSIGN(const std::vector<std::string> names, setup.client->ListBlobs(kPrefix));
  if (names.size() < static_cast<size_t>(setup.workers)) return none;
  std::vector<PartSummary> shares;
  for (int worker = 0; worker < setup.workers; ++worker) {
    const std::string name = NameOf(worker);
    const Result<std::string> bytes = setup.client->GetBlob(name);
    if (bytes.status().code() == Code::kNotFound) return none;
    TRY(bytes.status());
    TRY_ASSIGN(PartSummary share, DecodePartSummary(*bytes, name));
    shares.push_back(share);
  }
  return std::optional(std::move(shares));
}

// A worker that has ended will not tell its share again.
Status CheckMissingSummaries(const WorkerSetup& setup, const std::vector<int>& ended) {
  if (ended.empty()) return Status::Ok();
  TRY_ASSIGN(const std::vector<std::string> names, setup.client->ListBlobs(kPrefix));
  for (const int worker : ended) {
    if (std::find(names.begin(), names.end(), NameOf(worker)) != names.end()) continue;
    return FailedPrecondition(
        fmt::format("worker {} has ended, and the servers have lost which part of the data it "
                    "trained; run the job again, with checkpoints or server_copies: 2",
                    worker));
  }
  return Status::Ok();
}

bool ReadColumn(ByteReader* reader, data::ColumnSummary* column) {
  for (double* const number : {&column->offset, &column->sum, &column->squares}) {
    if (!reader->Get(number).ok() || !std::isfinite(*number)) return false;
  }
  for (uint64_t* const count :
       {&column->numbers, &column->missing, &column->not_finite, &column->texts}) {
    if (!reader->Get(count).ok()) return false;
  }
  return true;
}

void WriteColumn(const data::ColumnSummary& column, ByteWriter* writer) {
  for (const double number : {column.offset, column.sum, column.squares}) writer->Put(number);
  for (const uint64_t count : {column.numbers, column.missing, column.not_finite, column.texts})
    writer->Put(count);
}

// Of a part before version 4, which was one range.
bool ReadOnlyRange(ByteReader* reader, PartSummary* share) {
  data::ShardRange& range = share->ranges.emplace_back();
  for (uint64_t* const number :
       {&range.begin.file, &range.begin.position, &range.end.file, &range.end.position}) {
    if (!reader->Get(number).ok()) return false;
  }
  if (range.begin == range.end) share->ranges.clear();
  return true;
}

// What version 4 has added.
bool ReadRanges(ByteReader* reader, PartSummary* share) {
  uint32_t ranges = 0;
  if (!reader->Get(&share->blocks).ok() || share->blocks == 0 || share->blocks > kMaxRanges ||
      !reader->Get(&ranges).ok() || ranges > kMaxRanges)
    return false;
  for (uint32_t i = 0; i < ranges; ++i) {
    if (!ReadOnlyRange(reader, share) || share->ranges.size() != i + 1) return false;
  }
  return true;
}

// What version 3 has added.
bool ReadLabelPart(ByteReader* reader, PartSummary* share) {
  uint32_t counts = 0;
  if (!reader->Get(&counts).ok() || counts > kMaxPartClasses) return false;
  share->class_counts.resize(counts);
  for (uint64_t& count : share->class_counts) {
    if (!reader->Get(&count).ok()) return false;
  }
  if (!share->classes.empty() && counts != share->classes.size()) return false;
  return ReadColumn(reader, &share->labels) && ReadColumn(reader, &share->weights);
}

// What version 2 has added.
bool ReadCsvPart(ByteReader* reader, PartSummary* share) {
  uint32_t columns = 0;
  if (!reader->Get(&columns).ok() || columns > data::kMaxCsvColumns) return false;
  for (uint32_t i = 0; i < columns; ++i) {
    if (!ReadColumn(reader, &share->columns.emplace_back())) return false;
  }
  uint32_t classes = 0;
  if (!reader->Get(&classes).ok() || classes > kMaxPartClasses) return false;
  for (uint32_t i = 0; i < classes; ++i) {
    std::string_view name;
    if (!reader->GetString(&name, data::kMaxClassName).ok()) return false;
    share->classes.emplace_back(name);
  }
  return true;
}

// Counts of the same classes, or of a list of names that goes on with the share's.
void AddLabels(const PartSummary& share, DatasetSummary* all) {
  all->labels.Merge(share.labels);
  all->weights.Merge(share.weights);
  if (!share.classes.empty()) {
    all->class_counts.insert(all->class_counts.end(), share.class_counts.begin(),
                             share.class_counts.end());
    return;
  }
  all->class_counts.resize(std::max(all->class_counts.size(), share.class_counts.size()));
  for (size_t c = 0; c < share.class_counts.size(); ++c)
    all->class_counts[c] += share.class_counts[c];
}

}  // namespace

std::string EncodePartSummary(const PartSummary& share) {
  std::string bytes;
  ByteWriter writer(&bytes);
  writer.Put(kVersion);
  for (const uint64_t number :
       {share.corpus, share.files, share.part, share.parts, share.examples, share.extent.features})
    writer.Put(number);
  writer.Put(share.extent.fields);
  writer.Put(static_cast<uint32_t>(share.columns.size()));
  for (const data::ColumnSummary& column : share.columns) WriteColumn(column, &writer);
  writer.Put(static_cast<uint32_t>(share.classes.size()));
  for (const std::string& name : share.classes) writer.PutString(name);
  writer.Put(static_cast<uint32_t>(share.class_counts.size()));
  for (const uint64_t count : share.class_counts) writer.Put(count);
  WriteColumn(share.labels, &writer);
  WriteColumn(share.weights, &writer);
  writer.Put(share.blocks);
  writer.Put(static_cast<uint32_t>(share.ranges.size()));
  for (const auto& [begin, end] : share.ranges) {
    for (const uint64_t number : {begin.file, begin.position, end.file, end.position})
      writer.Put(number);
  }
  return bytes;
}

Result<PartSummary> DecodePartSummary(std::string_view bytes, std::string_view name) {
  PartSummary share;
  ByteReader reader(bytes);
  uint32_t version = 0;
  bool good = reader.Get(&version).ok() && version >= 1 && version <= kVersion;
  for (uint64_t* const number : {&share.corpus, &share.files, &share.part, &share.parts})
    good = good && reader.Get(number).ok();
  if (version < 4) good = good && ReadOnlyRange(&reader, &share);
  for (uint64_t* const number : {&share.examples, &share.extent.features})
    good = good && reader.Get(number).ok();
  good = good && reader.Get(&share.extent.fields).ok();
  if (version > 1) good = good && ReadCsvPart(&reader, &share);
  if (version > 2) good = good && ReadLabelPart(&reader, &share);
  if (version > 3) good = good && ReadRanges(&reader, &share);
  good = good && reader.remaining() == 0 && share.extent.features <= data::kMaxFeature + 1 &&
         share.extent.fields <= data::kMaxFields;
  if (good) return share;
  return DataLoss(fmt::format("{} on the servers is malformed ({} bytes)", name, bytes.size()));
}

Status CheckPartSummaries(std::span<const PartSummary> shares) {
  struct OwnedRange {
    data::ShardRange range;
    uint64_t part;
  };
  std::vector<bool> taken(shares.size());
  std::vector<OwnedRange> in_order;
  for (size_t worker = 0; worker < shares.size(); ++worker) {
    const PartSummary& share = shares[worker];
    if (share.corpus != shares[0].corpus || share.files != shares[0].files) {
      return FailedPrecondition(fmt::format(
          "workers 0 and {} see different data: the sizes, the order or the number of the data "
          "files differ between them; give all of them the same files",
          worker));
    }
    if (share.parts != shares.size() || share.part >= shares.size() || taken[share.part]) {
      return FailedPrecondition(fmt::format(
          "worker {} has part {} of {} of the data, expected one of {} that no other worker has",
          worker, share.part, share.parts, shares.size()));
    }
    taken[share.part] = true;
    for (const data::ShardRange& range : share.ranges) in_order.push_back({range, share.part});
  }
  std::ranges::stable_sort(in_order, {}, [](const OwnedRange& one) { return one.range.begin; });
  data::ShardBoundary at;
  for (const auto& [range, part] : in_order) {
    if (range.begin != at) {
      return FailedPrecondition(fmt::format(
          "part {} of the data begins at {}, expected {} where the part before it ends; give all "
          "workers the same files",
          part, Text(range.begin), Text(at)));
    }
    at = range.end;
  }
  if (shares.empty() || at == data::ShardBoundary{shares[0].files, 0}) return Status::Ok();
  return FailedPrecondition(
      fmt::format("the parts of the data end at {}, expected the end of its {} files", Text(at),
                  shares[0].files));
}

Result<data::Division> AgreedDivision(const WorkerSetup& setup, const data::Corpus& corpus) {
  const auto workers = static_cast<uint64_t>(setup.workers);
  if (workers == 1) return data::Division{};
  TRY_ASSIGN(const std::vector<std::string> names, setup.client->ListBlobs(kPrefix));
  for (const std::string& name : names) {
    const Result<std::string> bytes = setup.client->GetBlob(name);
    if (bytes.status().code() == Code::kNotFound) continue;
    TRY(bytes.status());
    TRY_ASSIGN(const PartSummary share, DecodePartSummary(*bytes, name));
    return data::Division{workers, share.blocks};
  }
  return DivisionFor(corpus, setup.format, workers, setup.data_cache.keep == CacheMode::kOn);
}

Status PublishPartSummary(const WorkerSetup& setup) {
  if (setup.workers == 1 && !setup.checkpoints) return Status::Ok();
  return setup.shared_blobs->Publish(NameOf(setup.index), EncodePartSummary(setup.share));
}

Result<DatasetSummary> CollectPartSummaries(const WorkerSetup& setup, bool resumed) {
  if (resumed) TRY(CheckSummaryUnchanged(setup));
  TRY(PublishPartSummary(setup));
  for (auto pause = kPoll;; pause = std::min(pause * 2, kSlowPoll)) {
    std::optional<std::vector<PartSummary>> shares(std::vector<PartSummary>{setup.share});
    const std::vector<int> ended = setup.ended ? setup.ended() : std::vector<int>{};
    if (setup.workers > 1) {
      TRY_ASSIGN(shares, ReadPartSummaries(setup));
    }
    if (shares) {
      TRY(CheckPartSummaries(*shares));
      DatasetSummary all;
      for (const PartSummary& share : *shares) {
        all.extent.features = std::max(all.extent.features, share.extent.features);
        all.extent.fields = std::max(all.extent.fields, share.extent.fields);
        all.examples.push_back(share.examples);
        all.columns.resize(std::max(all.columns.size(), share.columns.size()));
        for (size_t i = 0; i < share.columns.size(); ++i) all.columns[i].Merge(share.columns[i]);
        AddLabels(share, &all);
        all.classes.insert(all.classes.end(), share.classes.begin(), share.classes.end());
      }
      return all;
    }
    TRY(CheckMissingSummaries(setup, ended));
    if (setup.stop->load()) return Cancelled("stopped before the training began");
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace shoal::learn::sparse
