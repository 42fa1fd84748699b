// Records of files in any format: lines of text, TFRecords, or rows of Parquet as lines of JSON.
// Malformed records are counted, the first are kept with their place, and too many are an error; so
// a damaged file never passes silently and never ends a program in a crash.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/corpus/corpus.h"
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
};

struct Record {
  std::string_view bytes;  // without the end of the line; valid until the next call
  size_t file = 0;         // in corpus.files()
  uint64_t offset = 0;     // of its first byte in the file's (unpacked) bytes
  uint64_t number = 0;     // in its file, from 1: the line of formats of lines
                           // (of Parquet there is no offset)
};

struct BadRecord {
  std::string file;
  uint64_t offset = 0;
  uint64_t number = 0;
  std::string reason;
  // "FILE:NUMBER (byte OFFSET): REASON"
  std::string text() const;
};

// Reads all files of a corpus in order. Not thread-safe. Empty lines are no records, nor is the
// first line of each CSV file. Memory: one record, at most kMaxRecord.
class RecordReader {
 public:
  RecordReader(Corpus corpus, RecordFormat format, RecordOptions options = {});
  ~RecordReader();

  // False at the end. A malformed record (not JSON, another number of cells than the first line of
  // CSV, longer than kMaxRecord, a wrong checksum) is passed over and counted; InvalidArgument with
  // its place once there are more than tolerated. DataLoss where TFRecord's own framing is damaged,
  // since the next record cannot be found.
  Result<bool> Next(Record* record);

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
  Result<bool> NextParquetRow(Record* record);
  std::string FaultOf(const Record& record);
  Status CountBad(const Record& record, std::string reason);
  Status CheckShare(bool at_end) const;

  const Corpus corpus_;
  const RecordFormat format_;
  const RecordOptions options_;
  StreamBuffer buffer_;                // open within a file
  std::unique_ptr<ParquetRows> rows_;  // in place of it
  std::string row_;                    // of them
  size_t next_group_ = 0;
  size_t next_file_ = 0;
  uint64_t number_ = 0;
  uint64_t good_ = 0;
  uint64_t bad_ = 0;
  uint64_t row_bytes_ = 0;  // read by rows_ of all files
  std::vector<BadRecord> first_bad_;
  std::vector<std::string> columns_;
};

}  // namespace shoal::data
