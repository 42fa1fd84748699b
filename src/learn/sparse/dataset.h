// Examples in memory, a shard a thread, with the factor that gives each unit length.
#pragma once

#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "data/examples/examples.h"
#include "learn/sparse/learner.h"

namespace shoal::learn::sparse {

inline Row RowOf(const data::ExampleSet& set, size_t i, float scale) {
  const auto features = set.FeaturesOf(i);
  const auto count = static_cast<uint32_t>(features.size());
  return {features.data(), set.ValuesOf(i), count, scale, set.FieldsOf(i)};
}

// Runs `work(i)` for i below `count`, each in a thread of its own; at least one.
template <typename Work>
void InParallel(size_t count, const Work& work) {
  std::vector<std::thread> threads;
  for (size_t i = 1; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  work(0);
  for (std::thread& thread : threads) thread.join();
}

struct LoadedShard {
  data::ExampleSet set;
  std::vector<float> scales;  // of each example

  Row RowOf(size_t i) const {
    Row row = sparse::RowOf(set, i, scales[i]);
    if (!set.weights.empty()) row.weight = set.weights[i];
    return row;
  }
};

// How several workers divide a corpus: each takes many blocks from its beginning to its end, so
// that workers whose examples are ordered by time learn of the same time (docs/adr/0465). Files
// that cannot be read from the middle, because they are compressed or of records without lines, are
// cut no more than one range for each worker would cut them, or in few places where they are many.
// `whole_files`: so are all, as files are copied as a whole. Does not depend on the machine.
data::Division DivisionFor(const data::Corpus& corpus, data::ExampleFormat format, uint64_t workers,
                           bool whole_files = false);

// Part `part` of the corpus, a shard for each of `threads` threads, which read them.
// Without raw columns the scales are set: each example's own if `rows`, else the columns'. Errors
// as data::ReadExamples.
Result<std::vector<LoadedShard>> LoadShards(const data::Corpus& corpus, uint64_t part,
                                            const data::Division& division, uint64_t threads,
                                            data::ExampleOptions options, bool rows);

// Takes examples out of a shard: those that a hash of seed and place, evenly spread over [0, 1),
// gives a number in [range.first, range.second), the same in every run. Throws std::bad_alloc.
LoadedShard TakeShare(std::pair<double, double> range, uint64_t seed, LoadedShard* shard);

// Factors of one set: if `rows`, those that give each example unit length, else `scale` for all.
std::vector<float> ScalesOf(const data::ExampleSet& set, bool rows, float scale);

// Gives shards that were read with `options` and raw columns the scales of `columns`, a thread for
// each. ResourceExhausted without memory.
Status ScaleShards(const data::ExampleOptions& options, const data::CsvColumns& columns,
                   std::vector<LoadedShard>* shards);

// Without the features from `end` on, for which there are no weights. Call after ScalesOf.
void DropFeaturesFrom(uint64_t end, data::ExampleSet* set);

// What an order of examples depends on.
struct OrderKey {
  uint64_t seed = 0;
  uint64_t shard = 0;
  uint64_t epoch = 0;
};
// The order in which so many examples are trained in an epoch (Fisher–Yates).
void DrawExampleOrder(const OrderKey& key, size_t size, std::vector<uint32_t>* order);

}  // namespace shoal::learn::sparse
