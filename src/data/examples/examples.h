// Reads labelled examples with sparse features from libsvm, libffm and tables, over exact, disjoint
// byte ranges. Used by the trainers on sparse examples (learn/sparse) and by `shoal
// predict`.
//
// A line belongs to the shard in which its first byte lies, so that each example is in exactly one
// shard and the shards in order give the examples in order. (Text shards differ: a cut moves to the
// start of a line only if one is near; see corpus.h.)
//
// line    = [label *(blank number ":" value)] [blank] ["#" anything]
// number  = 1*20 digits; below 2^32 − 1 unless hashed
// value   = a finite decimal number
//
// libffm has FIELD:NUMBER:VALUE in place of NUMBER:VALUE; fields are dropped unless keep_fields is
// set. The other formats are tables (csv.h), in which each column is a field: CSV, TSV, JSON lines
// TFRecord with tf.train.Example and Parquet.
//
// A TFRecord belongs to the shard in which its first byte lies, too. Since its place follows only
// from the lengths of all before it, a shard that begins in the middle of a file reads those. Of
// Parquet a row group belongs to the shard in which its first byte lies.
//
// Formats: docs/formats/examples.md.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/corpus/corpus.h"
#include "data/examples/classes.h"
#include "data/examples/column_scaling.h"
#include "data/examples/csv.h"
#include "data/examples/growable_array.h"

namespace shoal::data {

inline constexpr size_t kMaxExampleLine = 64u << 20;
inline constexpr uint64_t kMaxFeature = UINT32_MAX - 1;
inline constexpr int kMaxHashBits = 31;
inline constexpr uint32_t kMaxFields = 65536;

enum class ExampleFormat : uint8_t {
  kLibsvm,
  kLibffm,
  kCsv,
  kTsv,
  kJsonLines,
  kTfRecord,
  kParquet
};

// Whether it has columns (csv.h).
inline bool IsTable(ExampleFormat format) {
  return format != ExampleFormat::kLibsvm && format != ExampleFormat::kLibffm;
}
// What Corpus::Open is to check.
inline Content ContentOf(ExampleFormat format) {
  return format == ExampleFormat::kTfRecord || format == ExampleFormat::kParquet ? Content::kBytes
                                                                                 : Content::kText;
}

struct ExampleOptions {
  // 0: features keep their numbers; b > 0: a feature is HashFeature(number, b).
  int hash_bits = 0;
  // True: labels must be −1, 0 or 1 and become 0 or 1. False: any finite number.
  bool binary_labels = true;
  // Any finite number, whatever binary_labels says; for tables less ExampleSet::label_offset.
  bool real_labels = false;
  double least_label = -std::numeric_limits<double>::infinity();  // with real_labels
  ExampleFormat format = ExampleFormat::kLibsvm;
  bool missing_labels = false;  // of tables: a missing cell is the label NaN
  // For tables: not null, and hash_bits is not 0.
  std::shared_ptr<const CsvColumns> csv = nullptr;
  // For tables, with columns that have no scales: numbers are read as raw values
  // (column_scaling.h).
  bool raw_columns = false;
  // For tables, with columns that know no classes: labels are read as indices of names (classes.h).
  bool raw_labels = false;
  size_t max_classes = kMaxBinaryClasses;  // with raw_labels
  // For kLibffm and tables: store ExampleSet::fields.
  bool keep_fields = false;
  // 0: fields keep their numbers, below kMaxFields. Otherwise a field is its number modulo this
  // value, at most kMaxFields.
  uint32_t fields = 0;
  // Of tables: the share of malformed rows of a shard that is passed over, 0…1. With 0 the first
  // one is an error.
  double max_bad = 0;
};

// Multiplicative hash to [0, 2^bits), 1 ≤ bits ≤ kMaxHashBits (Knuth, vol. 3, 6.4).
inline uint32_t HashFeature(uint64_t number, int bits) {
  return static_cast<uint32_t>(((number ^ number >> 32) * 0x9e37'79b9'7f4a'7c15) >> (64 - bits));
}

// Examples as compressed sparse rows: example i has the features and values [starts[i], starts[i +
// 1]). The features of an example are strictly ascending: lines in another order are sorted, and
// values of equal features (repeated, or with equal hashes) are added up, under the field of the
// first.
struct ExampleSet {
  ExampleSet() { starts.Push(0); }
  GrowableArray<float> labels;
  GrowableArray<uint64_t> starts;
  GrowableArray<uint32_t> features;
  GrowableArray<float> values;     // empty while all values are 1
  GrowableArray<uint16_t> fields;  // of each feature; empty unless keep_fields
  GrowableArray<float> weights;    // of each example; empty: csv has no column of weights
  std::vector<std::string> keys;   // of each example; empty unless csv keeps keys
  double label_offset = 0;         // of csv with real_labels: the first label; kept by Clear
  bool has_label_offset = false;
  std::vector<ColumnSummary> columns;  // with raw_columns; kept by Clear
  std::vector<std::string> classes;    // with raw_labels; kept by Clear
  uint64_t feature_end = 0;            // all features but raw ones are below
  uint32_t field_end = 0;              // all fields are below

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
  // Removes the examples, keeps the memory.
  void Clear();
};

// Reads a shard in pieces. Not thread-safe.
class ExampleReader {
 public:
  // `corpus` is copied (cheap).
  ExampleReader(const Corpus& corpus, Shard shard, ExampleOptions options);
  ExampleReader(ExampleReader&&) noexcept;
  ~ExampleReader();

  // Appends the examples of the next piece of text (about 1 MiB) to `set`; false at the end of the
  // shard. InvalidArgument for the first malformed line: "PATH:LINE: got X, expected Y";
  // ResourceExhausted if memory is exhausted; else errors as TextStream. After an error only
  // destruction is allowed. Allocates only if `set` grows.
  Result<bool> Read(ExampleSet* set);
  // Bytes of decompressed text read so far, for progress.
  uint64_t bytes_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads a whole shard.
Result<ExampleSet> ReadExamples(const Corpus& corpus, const Shard& shard, ExampleOptions options);

}  // namespace shoal::data
