// The bytes of a stream of text as far as they are needed together: records are cut out of it
// without being copied.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data/corpus/source_file.h"

namespace shoal::data {

// Grows with what is really there, never with a length that a file claims. Not thread-safe.
class StreamBuffer {
 public:
  // Continues with another file; null: with none.
  void Reset(std::unique_ptr<TextStream> stream);
  bool open() const { return stream_ != nullptr; }

  // Reads until `size` bytes are unused; false if the file ends before. Views of earlier calls are
  // invalid afterwards.
  Result<bool> Ensure(size_t size);
  // What was read and not yet used.
  std::string_view unused() const { return std::string_view(bytes_).substr(used_); }
  void Use(size_t size) { used_ += size; }
  // Uses the next `size` bytes without reading them where the stream can seek; false if the file
  // ends before.
  Result<bool> Skip(uint64_t size);

  // Place of the first unused byte in the file's unpacked bytes.
  uint64_t place() const { return begin_ + used_; }
  bool at_end() const { return at_end_; }  // all of the file was read
  // Of all files so far, without those that were skipped.
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  std::unique_ptr<TextStream> stream_;
  std::string bytes_;
  size_t used_ = 0;
  uint64_t begin_ = 0;  // place of the first of bytes_
  bool at_end_ = false;
  uint64_t bytes_read_ = 0;
};

enum class LineKind : uint8_t { kNone, kLine, kTooLong };

// Takes the next line, without its end; none at the end of the file. One of more than `most` bytes
// is passed over without being kept. The line is valid until the buffer is used again.
Result<LineKind> TakeLine(StreamBuffer* buffer, size_t most, std::string_view* line);

}  // namespace shoal::data
