// Word vectors in memory and in word2vec's two file formats (docs/formats/model.md), which gensim,
// fastText and everybody else read. Readers are bounded and checked: a file is hostile until
// proven.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::model {

inline constexpr uint64_t kMaxDim = 65536;
inline constexpr uint64_t kMaxRows = uint64_t{1} << 31;
inline constexpr size_t kMaxWordBytes = 4096;  // in a file that somebody else wrote

// Words by falling frequency and their vectors. Plain data.
struct Vectors {
  std::vector<std::string> words;
  uint64_t dim = 0;
  std::vector<float> values;  // [words × dim], row-major

  std::span<const float> row(uint64_t index) const {
    return {values.data() + index * dim, static_cast<size_t>(dim)};
  }
};

struct ReadOptions {
  uint64_t max_rows = kMaxRows;            // only the first so many rows
  uint64_t max_bytes = uint64_t{1} << 40;  // of memory for values; ResourceExhausted beyond
};

// `path` is a model directory (its vectors.bin, else vectors.txt) or a file in either format, told
// apart by its content. NotFound, or DataLoss / InvalidArgument that names the row and what is
// wrong with it. NaN and infinity are read as they are.
Result<Vectors> ReadVectors(const std::filesystem::path& path, const ReadOptions& options = {});
// The file that ReadVectors would read. NotFound.
Result<std::filesystem::path> FindVectors(const std::filesystem::path& path);
// The same from bytes, for tests and fuzzing; `name` stands in messages.
Result<Vectors> ParseVectors(std::string_view bytes, std::string_view name,
                             const ReadOptions& options = {});

// Where the writer gets what it writes; called from the writer's thread, rows ascending.
struct RowSource {
  uint64_t rows = 0;
  uint64_t dim = 0;
  std::function<std::string_view(uint64_t row)> word;  // good until the next call
  // Rows [first, first + rows) into `to` [rows × dim].
  std::function<Status(uint64_t first, uint64_t rows, float* to)> read;
};
RowSource RowsOf(const Vectors& vectors);

enum class Format : uint8_t { kBinary, kText };

// Writes to a descriptor through one block of at most 1 MiB. Words that hold whitespace or are
// empty are refused. Text has the shortest decimals that read back as the same floats. Gives the
// SHA-256 of what was written, in hex.
Result<std::string> WriteVectors(int fd, Format format, const RowSource& rows);
// The same as a file that appears whole or not at all.
Result<std::string> WriteVectorsFile(const std::filesystem::path& path, Format format,
                                     const RowSource& rows);

}  // namespace shoal::model
