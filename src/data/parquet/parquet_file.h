// What a Parquet file holds, from its footer: columns, and row groups with the places of their
// chunks. Source: parquet-format's parquet.thrift and its pages LogicalTypes, Encodings.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/corpus/source_file.h"

namespace shoal::data {

// How bytes are stored; the numbers are those of the format.
enum class ParquetType : uint8_t {
  kBoolean = 0,
  kInt32 = 1,
  kInt64 = 2,
  kInt96 = 3,
  kFloat = 4,
  kDouble = 5,
  kBytes = 6,
  kFixedBytes = 7,
};

enum class ParquetMeaning : uint8_t { kPlain, kDecimal, kUnsigned, kFloat16 };

struct ParquetColumn {
  std::string name;  // dotted; of a list its own name, without those of its elements
  ParquetType type = ParquetType::kInt32;
  ParquetMeaning meaning = ParquetMeaning::kPlain;
  size_t width = 0;     // of kFixedBytes
  int scale = 0;        // of decimals
  int definitions = 0;  // the highest definition level
  int repetitions = 0;
  int list_definition = 0;  // of lists: from this level on there is an element
  bool left_out = false;    // a list of lists or objects, or a map
};

// The least and the greatest value of a chunk, but for nulls and NaNs, as the format stores values.
// The writer may have shortened texts, to one that is less or greater.
struct ParquetBounds {
  std::string least;
  std::string most;
  int64_t nulls = -1;  // -1: not known
};

struct ParquetChunk {
  uint64_t begin = 0;  // in the file
  uint64_t bytes = 0;
  uint64_t values = 0;
  int codec = 0;
  std::shared_ptr<const ParquetBounds> bounds = nullptr;  // if asked for, and there
};

struct ParquetRowGroup {
  uint64_t begin = 0;  // of its first chunk
  uint64_t rows = 0;
  std::vector<ParquetChunk> chunks;  // one for each column
};

struct ParquetFooter {
  std::vector<ParquetColumn> columns;
  std::vector<ParquetRowGroup> groups;
  uint64_t rows = 0;
};

// Reads exact ranges of a file or object. Not thread-safe.
class ByteRanges {
 public:
  static Result<std::unique_ptr<ByteRanges>> Open(const SourceFile& file);
  virtual ~ByteRanges() = default;
  // DataLoss if the file ends before.
  virtual Status Read(uint64_t offset, char* to, size_t size) = 0;
};

// DataLoss or InvalidArgument, one sentence with the file, for what is no Parquet file, is damaged,
// encrypted, or of no kind that is read.
Result<ParquetFooter> ReadParquetFooter(const SourceFile& file, ByteRanges* bytes,
                                        bool with_bounds = false);

}  // namespace shoal::data
