// Word vectors in memory and in word2vec's two file formats (docs/formats/model.md), which gensim
// and fastText read too. Readers treat files as hostile: everything is bounded and checked.
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
inline constexpr size_t kMaxWordBytes = 4096;  // in files of other programs

// Words by descending frequency, and their vectors. Plain data.
struct Vectors {
  std::vector<std::string> words;
  uint64_t dim = 0;
  std::vector<float> values;  // [words × dim], row-major

  std::span<const float> row(uint64_t index) const {
    return {values.data() + index * dim, static_cast<size_t>(dim)};
  }
};

struct ReadOptions {
  uint64_t max_rows = kMaxRows;            // read only the first rows
  uint64_t max_bytes = uint64_t{1} << 40;  // limit of memory for values; else ResourceExhausted
};

// Reads a model directory (vectors.bin, else vectors.txt) or a file in either format, detected by
// content. NotFound, or DataLoss / InvalidArgument with the row and the problem. NaN and infinity
// are accepted.
Result<Vectors> ReadVectors(const std::filesystem::path& path, const ReadOptions& options = {});
// The file that ReadVectors would read; NotFound.
Result<std::filesystem::path> FindVectors(const std::filesystem::path& path);
// ReadVectors from memory, for tests and fuzzing; `name` appears in messages.
Result<Vectors> ParseVectors(std::string_view bytes, std::string_view name,
                             const ReadOptions& options = {});

// The source of a writer. Called in the writer's thread, rows ascending.
struct RowSource {
  uint64_t rows = 0;
  uint64_t dim = 0;
  std::function<std::string_view(uint64_t row)> word;  // valid until the next call
  // Reads rows [first, first + rows) into `to` [rows × dim].
  std::function<Status(uint64_t first, uint64_t rows, float* to)> read;
};
RowSource RowsOf(const Vectors& vectors);

enum class Format : uint8_t { kBinary, kText };

// Writes vectors to a descriptor through a buffer of at most 1 MiB. InvalidArgument for words that
// are empty or contain whitespace. Text has the shortest decimals that read back as the same
// floats. Returns the SHA-256 of the written bytes, in hex.
Result<std::string> WriteVectors(int fd, Format format, const RowSource& rows);
// WriteVectors to a file that is created atomically.
Result<std::string> WriteVectorsFile(const std::filesystem::path& path, Format format,
                                     const RowSource& rows);

}  // namespace shoal::model
