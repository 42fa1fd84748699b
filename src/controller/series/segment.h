// Segments: files with the chunks of many series, and an index of their names (docs/formats/
// series.md). Written once, never changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "controller/series/series_point.h"

namespace shoal::controller {

// One series of a segment.
struct SegmentEntry {
  std::string name;
  uint64_t offset = 0;  // of the chunk
  uint32_t length = 0;  // of the chunk, with its checksum
  uint64_t points = 0;  // reported numbers, not buckets
  int64_t first_ms = 0;
  int64_t last_ms = 0;
};

// `period` in ms; 0: single points. Not thread-safe.
class SegmentWriter {
 public:
  static Result<SegmentWriter> Create(const std::filesystem::path& path, int64_t period);
  // In ascending order of names; an empty series is left out.
  Status Add(const std::string& name, const std::vector<SeriesBucket>& buckets);
  // Makes the file visible, synced.
  Status Finish();

 private:
  SegmentWriter(AtomicFile file, int64_t period) : file_(std::move(file)), period_(period) {}
  Status Write(std::string_view bytes);

  AtomicFile file_;
  const int64_t period_;
  uint64_t size_ = 0;
  uint32_t series_ = 0;
  std::string index_;
};

// Thread-safe after Open. Memory: the index, at most kMaxIndex.
class SegmentReader {
 public:
  static constexpr size_t kMaxIndex = size_t{32} << 20;
  // DataLoss, with the path, for a file that SegmentWriter has not written.
  static Result<SegmentReader> Open(const std::filesystem::path& path) { return Open(path, {}); }
  // With the entry of this series alone, if there is one: a tenth of the time for 1000 series.
  static Result<SegmentReader> OpenOne(const std::filesystem::path& path, std::string_view name) {
    return Open(path, name);
  }

  const std::vector<SegmentEntry>& entries() const { return entries_; }  // by name
  const SegmentEntry* Find(std::string_view name) const;
  Result<std::vector<SeriesBucket>> Read(const SegmentEntry& entry) const;
  int64_t period() const { return period_; }

 private:
  SegmentReader() = default;
  // `only` empty: all entries.
  static Result<SegmentReader> Open(const std::filesystem::path& path, std::string_view only);
  UniqueFd fd_;
  std::string path_;
  int64_t period_ = 0;
  std::vector<SegmentEntry> entries_;
};

// The entries of an index whose chunks lie in [kSegmentHeaderBytes, `chunks_end`). DataLoss unless
// they are valid and in ascending order of names.
inline constexpr uint64_t kSegmentHeaderBytes = 24;
Result<std::vector<SegmentEntry>> ParseSegmentIndex(std::string_view bytes, uint64_t chunks_end);
// The entry of one series, if there is one; the others are passed over unread.
Result<std::vector<SegmentEntry>> FindInSegmentIndex(std::string_view bytes, uint64_t chunks_end,
                                                     std::string_view name);

}  // namespace shoal::controller
