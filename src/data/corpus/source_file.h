// A text file as a stream of bytes: plain, gzip or zstd, detected by the first bytes and not by the
// name; of this machine, or an object elsewhere, whose next ranges are fetched ahead. Corpus
// (corpus.h) opens many of them; tokenizers read the streams.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/status.h"
#include "data/objects/object.h"

namespace shoal::data {

enum class Compression : uint8_t { kNone = 0, kGzip = 1, kZstd = 2 };

// What the bytes are: text is checked to be text, and may be compressed.
enum class Content : uint8_t { kText = 0, kBytes = 1 };

// The properties of a file when it was inspected. A file that is shorter later is an error.
struct SourceFile {
  std::filesystem::path path;  // or URI
  Compression compression = Compression::kNone;
  uint64_t stored_bytes = 0;  // size on disk, compressed or not
  // In the version that was inspected; null: a file of this machine.
  std::shared_ptr<const Object> object = nullptr;
  Content content = Content::kText;
};

// Opens the file and checks its beginning. InvalidArgument, one sentence with the path, if it does
// not exist, is not a regular file, may not be read, has an unsupported compression (xz, bzip2,
// zip, lz4), or is not text (with the offending byte). An empty file is not an error: stored_bytes
// is 0.
Result<SourceFile> InspectFile(const std::filesystem::path& path, Content content = Content::kText);
// The same for an object. Other errors as Object::ReadAt.
Result<SourceFile> InspectObject(std::shared_ptr<const Object> object,
                                 Content content = Content::kText);

// Reads the decompressed text of one file, forward only. Not thread-safe; several streams may read
// one file.
class TextStream {
 public:
  // DataLoss if the file has disappeared or shrunk since it was inspected, or the object changed.
  static Result<std::unique_ptr<TextStream>> Open(const SourceFile& file);
  virtual ~TextStream() = default;

  // Reads up to `size` (≥ 1) bytes of text; 0 means the end. DataLoss if the file shrank, or its
  // compressed data is corrupt or truncated; InvalidArgument at a NUL byte, with its position.
  Result<size_t> Read(char* to, size_t size);
  // Skips to byte `position` (≥ position()) of the text, or to the end. O(1) for plain files;
  // compressed files are decompressed up to there.
  Status SkipTo(uint64_t position);
  // Position in the decompressed text.
  uint64_t position() const { return position_; }

 protected:
  explicit TextStream(const SourceFile& file) : file_(file) {}
  virtual Result<size_t> ReadRaw(char* to, size_t size) = 0;
  // Seeks in O(1); false if the bytes must be read.
  virtual bool Jump(uint64_t position) = 0;

  const SourceFile file_;
  uint64_t position_ = 0;
};

// The length of the file's text: its size, or the result of decompressing all of it (gzip 0.3 GB/s,
// zstd 1 GB/s).
Result<uint64_t> MeasureText(const SourceFile& file);

}  // namespace shoal::data
