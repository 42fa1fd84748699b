// Records of files in any format: lines of text, TFRecords, or rows of Parquet as lines of JSON.
// Malformed records are counted, the first are kept with their place, and too many are an error; so
// a damaged file never passes silently and never ends a program in a crash.
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
#include "data/formats/fields.h"
#include "data/formats/json_text.h"
#include "data/formats/stream_buffer.h"
#include "data/formats/tfrecord.h"

namespace shoal::data {

class ParquetRows;

enum class RecordFormat : uint8_t {
  kText,
  kCsv,
  kTsv,
  kLibsvm,
  kLibffm,
  kJsonLines,
  kTfRecord,
  kParquet,
};

// "text", "csv", "tsv", "libsvm", "libffm", "jsonl", "tfrecord",
// "parquet". InvalidArgument lists them.
Result<RecordFormat> ParseRecordFormat(const std::string& name);
std::string_view NameOf(RecordFormat format);
// By the ending of a path or URI, without .gz and .zst and a query; kText for all others.
RecordFormat FormatOfPath(std::string_view path);
// What Corpus::Open is to check.
Content ContentOf(RecordFormat format);

inline constexpr size_t kMaxRecord = kMaxTfRecord;
inline constexpr size_t kKeptBadRecords = 10;

struct RecordOptions {
  // The share of malformed records that is tolerated, 0…1. With 0 the first one is an error.
  double max_bad = 0;
  // Whether records are looked at. Without, lines and TFRecords are given as they are framed, and
  // the caller reports those that are malformed by CountBad.
  bool checked = true;
  // Of Parquet: which columns are read. Empty: all.
  std::function<bool(std::string_view)> wants = {};
};

struct Record {
  std::string_view bytes;  // without the end of the line; valid until the next call
  size_t file = 0;         // in corpus.files()
  uint64_t offset = 0;     // of its first byte in the file's (unpacked) bytes
  uint64_t number = 0;     // in its file, from 1: the line of formats of lines; 0: not known
                           // (of Parquet there is no offset)
};

struct BadRecord {
  std::string file;
  uint64_t offset = 0;
  uint64_t number = 0;
  std::string reason;
  // "FILE:NUMBER (byte OFFSET): REASON", without a number that is not known
  std::string text() const;
};

// Reads the records of a corpus, or of a shard of it, in order. Not thread-safe. Empty lines are no
// records, nor is the first line of each CSV file or the same line again within files (which the
// log tells). Memory: one record, at most kMaxRecord.
//
// A record belongs to the shard in which its first byte lies. Segments of Parquet are rows: `begin`
// and `end` are numbers of rows of the file, from 0 (MakeRowShard).
class RecordReader {
 public:
  RecordReader(Corpus corpus, RecordFormat format, RecordOptions options = {});
  RecordReader(Corpus corpus, Shard shard, RecordFormat format, RecordOptions options = {});
  ~RecordReader();
  // Begins at `position`, the place of a record in the first segment's file (next_place); for the
  // first call of Next. Unlike the shard's own beginning, nothing before it is looked at.
  void StartAt(uint64_t position);

  // False at the end. A malformed record (not JSON, another number of cells than the first line of
  // CSV, longer than kMaxRecord, a wrong checksum) is passed over and counted; InvalidArgument with
  // its place once there are more than tolerated. DataLoss where TFRecord's own framing is damaged,
  // since the next record cannot be found.
  Result<bool> Next(Record* record);
  // Of Parquet: gives the next row to the visitor in place of making a line of it. Errors as Next.
  Result<bool> NextFields(FieldVisitor* visitor);
  // Takes back the record that Next gave last: it is malformed for this reason. Errors as Next.
  Status CountBad(const Record& record, std::string reason);

  // Where the next record is, or may be: a file, and a place for StartAt. The last file and its end
  // after the last record.
  ShardBoundary next_place() const;
  // The segment of the shard that next_place is in, by its index; their number at the end.
  size_t next_segment() const {
    return next_segment_ - (buffer_.open() || rows_ != nullptr ? 1 : 0);
  }

  uint64_t good() const { return good_; }
  uint64_t bad() const { return bad_; }
  const std::vector<BadRecord>& first_bad() const { return first_bad_; }
  // Unpacked bytes that were read so far.
  uint64_t bytes_read() const { return buffer_.bytes_read() + row_bytes_; }
  // The cells of the first line of CSV and TSV; empty before the first Next.
  const std::vector<std::string>& columns() const { return columns_; }

 private:
  Result<bool> OpenNext();
  Result<bool> NextLine(Record* record, std::string* fault);
  Result<bool> NextTfRecord(Record* record, std::string* fault);
  Result<bool> NextParquetRow(FieldVisitor* visitor);
  Result<bool> NextInFile(Record* record, std::string* fault);
  Status EnterSegment();
  Status ReadHeader(const SourceFile& file);
  Status EnterRow(uint64_t row);
  void Close();
  std::string FaultOf(const Record& record);
  bool TakeHeader(const Record& record);
  Status Finish() const;
  Status AddBad(const Record& record, std::string reason);
  Status CheckShare(bool at_end) const;

  const Corpus corpus_;
  const Shard shard_;
  const RecordFormat format_;
  const RecordOptions options_;
  StreamBuffer buffer_;                // open within a file
  std::unique_ptr<ParquetRows> rows_;  // in place of it
  JsonRow row_;                        // of them
  size_t next_group_ = 0;
  size_t next_segment_ = 0;
  Segment segment_;               // the current one, or the last
  std::optional<uint64_t> from_;  // of StartAt
  uint64_t number_ = 0;  // of the last record in its file; of formats of rows the rows passed
  uint64_t good_ = 0;
  uint64_t bad_ = 0;
  uint64_t row_bytes_ = 0;  // read by rows_ of all files
  std::vector<BadRecord> first_bad_;
  std::vector<std::string> columns_;
  std::string header_;     // the line with them, of a table
  uint64_t repeated_ = 0;  // lines that are it again, within files
  std::string first_repeated_;
};

// Shard `index` of `count` of files of rows: all shards have equally many rows, but for one. Reads
// the footers of all files. Errors as ParquetRows::Open.
Result<Shard> MakeRowShard(const Corpus& corpus, uint64_t index, uint64_t count);

}  // namespace shoal::data
