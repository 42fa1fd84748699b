#include "learn/sparse/dataset.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "learn/task/memory.h"

namespace shoal::learn::sparse {

std::vector<float> ScalesOf(const data::ExampleSet& set, bool rows, float scale) {
  std::vector<float> scales(set.size(), scale);
  for (size_t i = 0; rows && i < set.size(); ++i)
    scales[i] = UnitScale(set.ValuesOf(i), set.FeaturesOf(i).size());
  return scales;
}

void DropFeaturesFrom(uint64_t end, data::ExampleSet* set) {
  if (set->feature_end <= end) return;
  uint64_t kept = 0;
  uint64_t begin = 0;
  for (size_t i = 0; i < set->size(); ++i) {
    const uint64_t old_end = set->starts[i + 1];
    for (uint64_t k = begin; k < old_end && set->features[k] < end; ++k, ++kept) {
      set->features[kept] = set->features[k];
      if (!set->values.empty()) set->values[kept] = set->values[k];
      if (!set->fields.empty()) set->fields[kept] = set->fields[k];
    }
    begin = old_end;
    set->starts[i + 1] = kept;
  }
  set->features.SetSize(kept);
  if (!set->values.empty() && kept > 0) set->values.SetSize(kept);
  if (!set->fields.empty() && kept > 0) set->fields.SetSize(kept);
  set->feature_end = end;
}

namespace {

uint64_t MixBits(uint64_t x) {  // splitmix64 (Steele et al. 2014)
  x += 0x9e37'79b9'7f4a'7c15;
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11eb;
  return x ^ (x >> 31);
}

// Appends example i of `from`.
void CopyExample(const data::ExampleSet& from, size_t i, data::ExampleSet* to) {
  for (uint64_t k = from.starts[i]; k < from.starts[i + 1]; ++k) {
    to->features.Push(from.features[k]);
    if (!from.values.empty()) to->values.Push(from.values[k]);
    if (!from.fields.empty()) to->fields.Push(from.fields[k]);
  }
  to->labels.Push(from.labels[i]);
  to->starts.Push(to->features.size());
  if (!from.weights.empty()) to->weights.Push(from.weights[i]);
}

}  // namespace

LoadedShard TakeShare(std::pair<double, double> range, uint64_t seed, LoadedShard* shard) {
  LoadedShard taken, kept;
  const data::ExampleSet& all = shard->set;
  for (data::ExampleSet* const set : {&taken.set, &kept.set}) {
    set->columns = all.columns;
    set->classes = all.classes;
    set->label_offset = all.label_offset;
    set->feature_end = all.feature_end;
    set->field_end = all.field_end;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const double place = static_cast<double>(MixBits(MixBits(seed) + i) >> 11) * 0x1p-53;
    LoadedShard& to = place >= range.first && place < range.second ? taken : kept;
    CopyExample(all, i, &to.set);
    if (!shard->scales.empty()) to.scales.push_back(shard->scales[i]);
  }
  *shard = std::move(kept);
  return taken;
}

data::Division DivisionFor(const data::Corpus& corpus, data::ExampleFormat format, uint64_t workers,
                           bool whole_files) {
  constexpr uint64_t kBlocks = 16;            // of a worker, at most
  constexpr uint64_t kBlockBytes = 64 << 10;  // of a block, at least
  constexpr uint64_t kFilesOfUncutBlock = 4;  // of which the border of two blocks cuts one
  if (workers == 1) return {};
  const uint64_t files = corpus.files().size();
  bool lines = format != data::ExampleFormat::kTfRecord && format != data::ExampleFormat::kParquet;
  for (const data::SourceFile& file : corpus.files())
    lines = lines && file.compression == data::Compression::kNone;
  uint64_t blocks = files / workers;
  if (!lines) blocks /= kFilesOfUncutBlock;
  // Many files are cut as little as with one range, so that the copies of them on the workers'
  // hosts (data_cache.h) are as few.
  if (lines && !whole_files && blocks < 2) blocks = kBlocks;
  blocks = std::min({blocks, kBlocks, corpus.stored_bytes() / workers / kBlockBytes});
  return {workers, std::max<uint64_t>(1, blocks)};
}

Result<std::vector<LoadedShard>> LoadShards(const data::Corpus& corpus, uint64_t part,
                                            const data::Division& division, uint64_t threads,
                                            data::ExampleOptions options, bool rows) {
  std::vector<std::optional<Result<data::ExampleSet>>> read(threads);
  std::vector<LoadedShard> shards(threads);
  std::vector<std::thread> running;
  for (uint64_t i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      const Result<data::Shard> shard = corpus.MakeShardWithin(part, division, i, threads);
      read[i] = shard.ok() ? data::ReadExamples(corpus, *shard, options)
                           : Result<data::ExampleSet>(shard.status());
      if (!read[i]->ok()) return;
      shards[i].set = std::move(**read[i]);
      if (options.raw_columns) return;
      const float scale = options.csv != nullptr ? options.csv->schema.row_scale : 1.0f;
      try {
        shards[i].scales = ScalesOf(shards[i].set, rows, scale);
      } catch (const std::bad_alloc&) {
        read[i] = OutOfMemory();
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const auto& result : read) TRY(result->status());
  return shards;
}

Status ScaleShards(const data::ExampleOptions& options, const data::CsvColumns& columns,
                   std::vector<LoadedShard>* shards) {
  std::vector<Status> done(shards->size());
  std::vector<std::thread> running;
  for (size_t i = 0; i < shards->size(); ++i) {
    running.emplace_back([&, i] {
      LoadedShard& shard = (*shards)[i];
      try {
        data::ScaleColumns(options, columns, &shard.set);
        shard.scales = ScalesOf(shard.set, false, columns.schema.row_scale);
      } catch (const std::bad_alloc&) {
        done[i] = OutOfMemory();
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const Status& status : done) TRY(status);
  return Status::Ok();
}

void DrawExampleOrder(const OrderKey& key, size_t size, std::vector<uint32_t>* order) {
  uint64_t random = MixBits(MixBits(key.seed + MixBits(key.shard)) + key.epoch);
  order->resize(size);
  std::iota(order->begin(), order->end(), 0u);
  for (size_t left = size; left > 1; --left) {
    random = MixBits(random);
    const auto other = static_cast<size_t>((random >> 32) * left >> 32);
    std::swap((*order)[left - 1], (*order)[other]);
  }
}

}  // namespace shoal::learn::sparse
