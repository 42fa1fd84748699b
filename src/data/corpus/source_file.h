// A text file as a stream of bytes, whatever it is packed in: plain, gzip or zstd, told apart by
// its first bytes and not by its name. Corpus (shard.h) opens many; the tokenizer reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/status.h"

namespace shoal::data {

enum class Compression : uint8_t { kNone = 0, kGzip = 1, kZstd = 2 };

// What was found when the data was opened; a file that is shorter later is an error.
struct SourceFile {
  std::filesystem::path path;
  Compression compression = Compression::kNone;
  uint64_t stored_bytes = 0;  // as it lies on disk, compressed or not
};

// Opens the file once and looks at its first bytes. Errors, each one sentence with the path: it
// does not exist, is a directory, is no regular file, may not be read, is packed in a format that
// is not read here (xz, bzip2, zip, lz4), or is not text (says which byte): all InvalidArgument. An
// empty file is no error here: stored_bytes is 0.
Result<SourceFile> InspectFile(const std::filesystem::path& path);

// Forward only. Not thread-safe; many streams over one file are fine.
class TextStream {
 public:
  // DataLoss if the file has gone or shrunk since it was inspected.
  static Result<std::unique_ptr<TextStream>> Open(const SourceFile& file);
  virtual ~TextStream() = default;

  // Up to `size` (≥ 1) bytes of text into `to`; 0 means the end of the text. DataLoss if the file
  // shrank, or its compressed bytes are corrupt or end early; InvalidArgument at a NUL byte, which
  // no text holds (says which).
  Result<size_t> Read(char* to, size_t size);
  // The next byte that Read gives is byte `position` (≥ position()) of the text, or the end. O(1)
  // for plain files; compressed ones are decompressed up to there.
  Status SkipTo(uint64_t position);
  // Of the decompressed text.
  uint64_t position() const { return position_; }

 protected:
  explicit TextStream(const SourceFile& file) : file_(file) {}
  virtual Result<size_t> ReadRaw(char* to, size_t size) = 0;
  // False if it must be read through.
  virtual bool Jump(uint64_t position) = 0;

  const SourceFile file_;
  uint64_t position_ = 0;
};

// The length of the file's text in bytes: its size, or what a whole decompression gives (gzip 0.3,
// zstd 1 GB/s).
Result<uint64_t> MeasureText(const SourceFile& file);

}  // namespace shoal::data
