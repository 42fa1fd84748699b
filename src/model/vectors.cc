// Writes vectors, and finds the file of a model; read_vectors.cc reads vectors.
#include "model/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/id.h"

namespace shoal::model {
namespace {

constexpr size_t kBlock = 512 * 1024;

// Bytes that end a word for readers. Vertical tab and form feed are ordinary bytes, as in the
// tokenizer (data/text/tokenizer.h).
Status CheckWord(std::string_view word, uint64_t row) {
  const auto ends = [](char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0';
  };
  if (!word.empty() && word.size() <= kMaxWordBytes && std::none_of(word.begin(), word.end(), ends))
    return Status::Ok();
  return InvalidArgument(fmt::format("word {} cannot be written: {}", row,
                                     word.empty()                  ? "it is empty"
                                     : word.size() > kMaxWordBytes ? "it is too long"
                                                                   : "it holds whitespace"));
}

void AppendFloat(float value, std::string* out) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  out->append(digits, end.ptr);
}

// Buffers and digests what is written.
class DigestingFile {
 public:
  explicit DigestingFile(int fd) : fd_(fd) {}
  std::string* block() { return &block_; }
  Status FlushIfFull() { return block_.size() >= kBlock ? Flush() : Status::Ok(); }
  Result<std::string> Finish() {
    TRY(Flush());
    return digest_.Finish();
  }

 private:
  Status Flush() {
    if (block_.empty()) return Status::Ok();
    TRY(WriteAll(fd_, block_));
    digest_.Add(block_);
    block_.clear();
    return Status::Ok();
  }
  const int fd_;
  std::string block_;
  Sha256 digest_;
};

}  // namespace

RowSource RowsOf(const Vectors& vectors) {
  RowSource rows;
  rows.rows = vectors.words.size();
  rows.dim = vectors.dim;
  rows.word = [&vectors](uint64_t row) { return std::string_view(vectors.words[row]); };
  rows.read = [&vectors](uint64_t first, uint64_t count, float* to) {
    std::copy_n(vectors.values.data() + first * vectors.dim, count * vectors.dim, to);
    return Status::Ok();
  };
  return rows;
}

Result<std::string> WriteVectors(int fd, Format format, const RowSource& rows) {
  DigestingFile file(fd);
  fmt::format_to(std::back_inserter(*file.block()), "{} {}\n", rows.rows, rows.dim);
  const uint64_t at_once = std::max<uint64_t>(1, kBlock / std::max<uint64_t>(1, 4 * rows.dim));
  std::vector<float> values(std::min(at_once, rows.rows) * rows.dim);
  for (uint64_t first = 0; first < rows.rows; first += at_once) {
    const uint64_t count = std::min(at_once, rows.rows - first);
    TRY(rows.read(first, count, values.data()));
    for (uint64_t i = 0; i < count; ++i) {
      const std::string_view word = rows.word(first + i);
      TRY(CheckWord(word, first + i));
      const float* row = values.data() + i * rows.dim;
      std::string* out = file.block();
      out->append(word);
      if (format == Format::kBinary) {
        out->push_back(' ');
        out->append(reinterpret_cast<const char*>(row), rows.dim * sizeof *row);
      } else {
        for (uint64_t j = 0; j < rows.dim; ++j) {
          out->push_back(' ');
          AppendFloat(row[j], out);
        }
      }
      out->push_back('\n');
      TRY(file.FlushIfFull());
    }
  }
  return file.Finish();
}

Result<std::string> WriteVectorsFile(const std::filesystem::path& path, Format format,
                                     const RowSource& rows) {
  TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  auto digest = WriteVectors(file.fd(), format, rows);
  if (!digest.ok()) return digest.status().With(path.string());
  TRY(file.Commit());
  return digest;
}

}  // namespace shoal::model
