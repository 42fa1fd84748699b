// Labelled examples with sparse features, read from libsvm, libffm or CSV text over exact, disjoint
// byte ranges: the trainers on sparse examples (learn/sparse) and `shoal predict` call this.
//
// A line belongs to the shard in which its first byte lies, whatever its length, so each example is
// in exactly one shard, and the shards in order give the examples in order. (Text's own rule moves
// a cut to a line's start only where one is near; see shard.h.)
//
//   line    = [label *(blank number ":" value)] [blank] ["#" anything]
//   number  = 1*20 digits; below 2^32 − 1 unless hashed
//   value   = a finite decimal number
//
// libffm has FIELD:NUMBER:VALUE in place of NUMBER:VALUE; the fields are left out unless
// keep_fields. csv.h says what the cells of CSV are; there a column is a field.
//
// Formats: docs/formats/examples.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "data/corpus/corpus.h"
#include "data/examples/csv.h"
#include "data/examples/growable_array.h"

namespace shoal::data {

inline constexpr size_t kMaxExampleLine = 64u << 20;
inline constexpr uint64_t kMaxFeature = UINT32_MAX - 1;
inline constexpr int kMaxHashBits = 31;
inline constexpr uint32_t kMaxFields = 65536;

enum class ExampleFormat : uint8_t { kLibsvm = 0, kLibffm = 1, kCsv = 2 };

struct ExampleOptions {
  // 0: features keep their numbers. b > 0: a feature is HashFeature(number, b).
  int hash_bits = 0;
  // Labels must be −1, 0 or 1, and become 0 or 1; otherwise any finite number.
  bool binary_labels = true;
  ExampleFormat format = ExampleFormat::kLibsvm;
  // kCsv: not null, and hash_bits is not 0.
  std::shared_ptr<const CsvColumns> csv = nullptr;
  // kLibffm, kCsv: ExampleSet::fields are wanted.
  bool keep_fields = false;
  // 0: fields keep their numbers, below kMaxFields. Otherwise a field is its number modulo this,
  // which is at most kMaxFields.
  uint32_t fields = 0;
};

// Multiplicative hash to [0, 2^bits), 1 ≤ bits ≤ kMaxHashBits (Knuth, vol. 3, 6.4).
inline uint32_t HashFeature(uint64_t number, int bits) {
  return static_cast<uint32_t>(((number ^ number >> 32) * 0x9e37'79b9'7f4a'7c15) >> (64 - bits));
}

// Examples in compressed sparse rows: example i has the features and values [starts[i],
// starts[i + 1]). Features of an example rise strictly: what a line gives in another order is
// sorted, and values of the same feature (repeated, or hashed alike) are added up; it is of the
// field that the first of them has.
struct ExampleSet {
  ExampleSet() { starts.Push(0); }
  GrowableArray<float> labels;
  GrowableArray<uint64_t> starts;
  GrowableArray<uint32_t> features;
  GrowableArray<float> values;     // empty as long as all values are 1
  GrowableArray<uint16_t> fields;  // of each feature; empty unless keep_fields
  uint64_t feature_end = 0;        // all features are below
  uint32_t field_end = 0;          // all fields are below

  size_t size() const { return labels.size(); }
  std::span<const uint32_t> FeaturesOf(size_t i) const {
    return {features.data() + starts[i], features.data() + starts[i + 1]};
  }
  // Null if all values are 1.
  const float* ValuesOf(size_t i) const {
    return values.empty() ? nullptr : values.data() + starts[i];
  }
  // Null if fields are not kept.
  const uint16_t* FieldsOf(size_t i) const {
    return fields.empty() ? nullptr : fields.data() + starts[i];
  }
  size_t bytes() const {
    return labels.size() * 4 + starts.size() * 8 + features.size() * 4 + values.size() * 4 +
           fields.size() * 2;
  }
  // Forgets the examples, keeps the memory.
  void Clear();
};

// Streams a shard. Not thread-safe.
class ExampleReader {
 public:
  // `corpus` is copied (cheap).
  ExampleReader(const Corpus& corpus, Shard shard, ExampleOptions options);
  ExampleReader(ExampleReader&&) noexcept;
  ~ExampleReader();

  // Appends the examples of the next piece of text (about 1 MiB) to `set`. False at the shard's
  // end. InvalidArgument for the first malformed line: "PATH:LINE: got X, expected Y";
  // ResourceExhausted where memory is; else errors as TextStream. After an error only destruction
  // is allowed. Allocates only where `set` grows.
  Result<bool> Read(ExampleSet* set);
  // Of decompressed text, read so far, for progress.
  uint64_t bytes_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The whole shard at once.
Result<ExampleSet> ReadExamples(const Corpus& corpus, const Shard& shard, ExampleOptions options);

}  // namespace shoal::data
