// Series logs: the points of all series of a job in the order in which they came, in blocks with a
// checksum (docs/formats/series.md). Written while a job runs; converted to segments later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "controller/series/series_point.h"

namespace shoal::controller {

inline constexpr size_t kSeriesLogHeaderBytes = 16;
inline constexpr size_t kMaxSeriesBlock = 1 << 20;
// Of one log. Points of further series are not kept.
inline constexpr size_t kMaxSeries = 1 << 16;

std::string SeriesLogHeader();

// Builds blocks. A log's blocks define the names that they and later ones use, so one encoder
// writes one log. Not thread-safe. Memory: the names, and the block.
class SeriesLogEncoder {
 public:
  // False if the log has kMaxSeries others already.
  bool Add(const std::string& name, const SeriesPoint& point);
  size_t pending_bytes() const { return block_.size(); }
  // The block of what was added, with its length and checksum; empty without points.
  std::string TakeBlock();

 private:
  std::unordered_map<std::string, uint64_t> numbers_;  // by name, from 1
  std::string block_;
  int64_t last_ms_ = 0;
};

// Called in the order of the log. `number`: of the series, from 0.
struct SeriesLogVisitor {
  std::function<void(std::string_view name)> on_series;
  std::function<void(uint32_t number, const SeriesPoint& point)> on_point;
};

// Reads the blocks of a log up to the first one that is torn or damaged; returns the bytes read.
// DataLoss if it has no header. Nothing of a damaged block is delivered.
Result<size_t> ParseSeriesLog(std::string_view bytes, const SeriesLogVisitor& visitor);

// The file of a log. Not thread-safe.
class SeriesLogFile {
 public:
  // FailedPrecondition if the file exists: a log has one writer, which begins it.
  static Result<SeriesLogFile> Create(const std::filesystem::path& path);
  // Appends a block; after an error nothing of it is in the file. Not synced.
  Status Append(std::string_view block);
  size_t size() const { return size_; }

 private:
  explicit SeriesLogFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  size_t size_ = 0;
};

}  // namespace shoal::controller
