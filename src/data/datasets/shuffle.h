// The records of a part in a pseudo-random order, in bounded memory: pieces of its files are read
// in an order that a seed gives, and records are drawn from windows of them. The same seed gives
// the same order on every machine, so that a reader goes on at the exact record after a restart.
// ADR 477.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "data/corpus/corpus.h"
#include "data/formats/fields.h"
#include "data/formats/record_reader.h"

namespace shoal::data {

struct ShuffleOptions {
  uint64_t seed = 0;
  // Records of a window, which ends earlier after kShuffleBytes of them.
  uint64_t window = 100'000;
  bool operator==(const ShuffleOptions&) const = default;
};
inline constexpr uint64_t kMostShuffled = 10'000'000;
inline constexpr size_t kShuffleBytes = 64 << 20;

// Where a shuffled part goes on: the window begins in segment `piece` of ShufflePieces, and `given`
// of its records were given.
struct ShufflePlace {
  uint64_t piece = 0;
  uint64_t position =
      0;  // of the window's first record in the piece's file (RecordReader::next_place)
  uint64_t windows = 0;  // before it
  uint64_t given = 0;
  bool operator==(const ShufflePlace&) const = default;
};

// The shard's segments in pieces, in the order that the seed gives. Plain files of lines are cut
// into pieces of a 256th of the shard, at least 256 KiB; files of Parquet, whose footers are read,
// between row groups. Compressed files and TFRecord, which cannot be entered in the middle, stay as
// they are. The pieces together have the records of the shard. Errors as ParquetRows::Open.
Result<Shard> ShufflePieces(const Corpus& corpus, RecordFormat format, const Shard& shard,
                            uint64_t seed);

// Fields of rows, kept to be given again. Not thread-safe.
class KeptRows final : public FieldVisitor {
 public:
  void BeginRow() { rows_.push_back(fields_.size()); }
  void Value(std::string_view name, const TableCell& cell) override;
  void List(std::string_view name, std::span<const TableCell> values) override;
  void LeftOut(std::string_view name) override;
  // A copy of the text, until Clear.
  std::string_view Keep(std::string_view text);

  void Give(size_t row, FieldVisitor* visitor) const;
  size_t bytes() const { return bytes_; }  // about
  void Clear();

 private:
  enum class Kind : uint8_t { kValue, kList, kLeftOut };
  struct Field {
    const std::string* name;
    Kind kind;
    size_t first;  // in cells_
    size_t count;
  };
  void Add(std::string_view name, Kind kind, std::span<const TableCell> cells);

  std::vector<size_t> rows_;  // the first field of each
  std::vector<Field> fields_;
  std::vector<TableCell> cells_;
  std::deque<std::string> texts_;  // blocks, which never move
  size_t bytes_ = 0;
  std::unordered_map<std::string, size_t> names_;  // Field::name points to keys
};

// Draws the records of a reader of ShufflePieces window by window. Not thread-safe. Memory: a
// window of kShuffleBytes and one record more, at most.
class ShuffledRecords {
 public:
  // Reads by `reader`, which outlives it and begins at `from`. With `fields` rows of Parquet are
  // kept as typed fields, for GiveFields, else as lines of JSON.
  ShuffledRecords(RecordReader* reader, ShuffleOptions options, ShufflePlace from, bool fields);

  // False at the end. Errors as RecordReader::Next. The record is valid until the next call.
  Result<bool> Next(Record* record);
  // The fields of the row that Next gave last.
  void GiveFields(FieldVisitor* visitor) const { kept_.Give(row_, visitor); }

  // Where the next record is.
  ShufflePlace place() const { return place_; }

 private:
  Status Fill();

  RecordReader& reader_;
  const ShuffleOptions options_;
  const uint64_t first_piece_;  // of all, the reader's first
  const bool fields_;
  ShufflePlace place_;
  bool filled_ = false;  // the window of place_ is in memory
  KeptRows kept_;
  std::vector<Record> records_;
  std::vector<uint32_t> order_;
  size_t row_ = 0;
};

}  // namespace shoal::data
