// One part of a dataset, row by row: the exact share of one of many readers, which together read
// every record once, and a position to go on at after a restart. The programs of jobs read by it
// (`shoal data read`, `shoal.data` of Python), and `shoal data convert`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/corpus/corpus.h"
#include "data/datasets/shuffle.h"
#include "data/formats/fields.h"
#include "data/formats/record_reader.h"

namespace shoal::data {

// Takes rows. A row counts when it ends: one that begins without the end of the one before replaces
// it, since its record was malformed.
class RowTarget : public FieldVisitor {
 public:
  virtual void BeginRow() = 0;
  // What is wrong with the row, which then does not count; empty: nothing.
  virtual std::string EndRow() = 0;
};

// Part `part` of `parts`; of that, part `within` of `of`, such as of the processes of one task.
struct PartNumber {
  uint64_t part = 0;
  uint64_t parts = 1;
  uint64_t within = 0;
  uint64_t of = 1;
  bool operator==(const PartNumber&) const = default;
};

// Where the next record of a part is.
struct ReadPosition {
  PartNumber number;
  uint64_t data = 0;     // Corpus::fingerprint
  uint64_t records = 0;  // read before it; 0: the beginning, whatever the place
  ShardBoundary place;   // of a shuffled part without meaning
  // Of a shuffled part: how, and where.
  std::optional<ShuffleOptions> shuffle = {};
  ShufflePlace shuffled = {};
  bool operator==(const ReadPosition&) const = default;
};
// One line of JSON.
std::string TextOf(const ReadPosition& position);
// InvalidArgument if it is none.
Result<ReadPosition> ParseReadPosition(std::string_view text);

struct RowOptions {
  PartNumber number = {};
  double max_bad = 0;  // as RecordOptions
  // Which columns are given; of Parquet only these are read. Empty: all.
  std::function<bool(std::string_view)> wants = {};
  std::string from = {};  // a position to go on at; empty: the beginning
  // Gives the records in an order that this says, in place of the stored one.
  std::optional<ShuffleOptions> shuffle = {};
};

// The fields of a record: the cells of a table by the names in its first line, the fields of JSON,
// Parquet and tf.train.Example; of text `line`; of libsvm and libffm `label`, and the lists
// `indices`, `values` and `fields`. Not thread-safe.
class RowReader {
 public:
  // InvalidArgument for a position of other data, of another part, or of another order.
  static Result<std::unique_ptr<RowReader>> Open(const Corpus& corpus, RecordFormat format,
                                                 RowOptions options);

  // Gives the next row to the target; false at the end. Errors as RecordReader::Next.
  Result<bool> NextRow(RowTarget* target);
  // The next record as it is stored, without its framing (of Parquet a line of JSON). Of a shuffled
  // part call either this or NextRow.
  Result<bool> NextRecord(Record* record);

  ReadPosition position() const;
  const RecordReader& records() const { return *reader_; }

 private:
  RowReader(const Corpus& corpus, RecordFormat format, RowOptions options)
      : corpus_(corpus), format_(format), options_(std::move(options)) {}
  Status Start();
  Result<bool> NextStored(Record* record, bool fields);
  std::string ReadFields(const Record& record, RowTarget* target);
  std::string ReadCells(std::string_view line, RowTarget* target);
  std::string ReadFeatures(std::string_view line, RowTarget* target);
  bool Wants(std::string_view name) const { return !options_.wants || options_.wants(name); }

  const Corpus corpus_;
  const RecordFormat format_;
  const RowOptions options_;
  std::unique_ptr<RecordReader> reader_;
  std::unique_ptr<ShuffledRecords> shuffled_;  // draws from it, after the first call
  ShufflePlace begin_;                         // where it begins
  std::unique_ptr<FieldReader> fields_;        // of JSON and TFRecord
  uint64_t records_ = 0;                       // good ones, also before the position
  std::vector<bool> wanted_;                   // by column of a table
  std::string room_;
  std::vector<TableCell> indices_, values_, groups_;
};

}  // namespace shoal::data
