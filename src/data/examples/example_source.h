// Where examples come from: files of lines, of TFRecords or of row groups. Private to this room.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/examples/table.h"
#include "data/formats/record_reader.h"

namespace shoal::data {

// What takes what is read: rows of tables go to `sink`, examples of the other formats to `set`.
struct ExampleTarget {
  ExampleSet* set = nullptr;
  RowSink* sink = nullptr;
};

// Malformed rows that are passed over because there are few. Not thread-safe.
class BadRows {
 public:
  explicit BadRows(double max_bad) : max_bad_(max_bad) {}
  bool tolerates() const { return max_bad_ > 0; }
  void CountGood() { ++good_; }
  // InvalidArgument if that is one too many.
  Status Count(BadRecord bad);
  // The same at the end of a shard, where few rows are enough to judge; else a warning in the log.
  Status Finish() const;

 private:
  Status Check() const;
  const double max_bad_;
  uint64_t good_ = 0;
  uint64_t bad_ = 0;
  std::vector<BadRecord> first_;
};

// Reads a shard in pieces. Not thread-safe.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;
  // The next piece, about 1 MiB; false at the end of the shard. Errors as ExampleReader::Read.
  // Throws std::bad_alloc.
  virtual Result<bool> Read(const ExampleTarget& target) = 0;
  virtual uint64_t bytes_read() const = 0;
};

std::unique_ptr<ExampleSource> MakeLineSource(const Corpus& corpus, Shard shard,
                                              const ExampleOptions& options);
std::unique_ptr<ExampleSource> MakeTfRecordSource(const Corpus& corpus, Shard shard,
                                                  const ExampleOptions& options);
std::unique_ptr<ExampleSource> MakeParquetSource(const Corpus& corpus, Shard shard,
                                                 const ExampleOptions& options);

// Text for error messages: its first word, at most 40 bytes, without control characters.
std::string FirstWordOf(std::string_view text);

}  // namespace shoal::data
