// Reads the series of a job, also while it runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/series/series_point.h"

namespace shoal::controller {

struct SeriesInfo {
  std::string name;     // "worker-3.loss"
  uint64_t points = 0;  // reported numbers that are part of it
  int64_t first_ms = 0;
  int64_t last_ms = 0;
  double last = 0;  // the newest number, if the log has it; else has_last is false
  bool has_last = false;
};

struct SeriesRange {
  int64_t from_ms = -kMaxSeriesTime;
  int64_t to_ms = kMaxSeriesTime;  // inclusive
  size_t points = 0;               // at most so many, of equal periods; 0: all there are
};

// By name; none if the job has reported nothing. `dir`: SeriesDir. Files that are damaged are left
// out, with a warning in the log.
Result<std::vector<SeriesInfo>> ListSeries(const std::filesystem::path& dir);

// In the order of time. Older parts of a long series are coarser (docs/formats/series.md). NotFound
// names some of the existing series.
Result<std::vector<SeriesBucket>> ReadSeries(const std::filesystem::path& dir,
                                             const std::string& name, const SeriesRange& range);

}  // namespace shoal::controller
