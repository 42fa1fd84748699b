// The files of a job's series, in JOB_DIR/series: logs, which grow while the job runs, and segments
// of four resolutions made from them. A file covers a range of log numbers; one whose range lies
// within that of a coarser file has been replaced by it (and a crash kept its removal from
// happening).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::controller {

// Level -1: a log. Levels 0 to 3: segments of kSeriesPeriods[level] ms.
inline constexpr int kSeriesLevels = 4;
inline constexpr int64_t kSeriesPeriods[kSeriesLevels] = {0, 10'000, 60'000, 600'000};

struct SeriesFile {
  std::filesystem::path path;
  int level = -1;
  uint64_t first = 0;  // number of its first log, from 1
  uint64_t last = 0;
  uint64_t bytes = 0;
};

std::filesystem::path SeriesDir(const std::filesystem::path& job_dir);
std::filesystem::path SeriesLogPath(const std::filesystem::path& dir, uint64_t number);

// All series files of the directory, oldest first; none without it. Files of other names are
// ignored. With `stale`: those that were replaced go there.
Result<std::vector<SeriesFile>> ListSeriesFiles(const std::filesystem::path& dir,
                                                std::vector<SeriesFile>* stale = nullptr);

// Bytes that the segments of a level may take before its oldest ones become one of the next level;
// at the last level they are removed. With the logs, a job's series take at most 100 MB.
struct SeriesBudget {
  uint64_t levels[kSeriesLevels] = {uint64_t{12} << 20, uint64_t{12} << 20, uint64_t{44} << 20,
                                    uint64_t{16} << 20};
  size_t most_logs = 8;  // older logs than the newest are converted at this number
  uint64_t log_bytes = uint64_t{2} << 20;  // or at these bytes in all
};

// Converts logs and coarsens segments as far as the budget demands. The newest log is not touched.
// One call at a time for a directory. Memory: the points of the converted logs (16 bytes each), or
// one series.
Status CompactSeries(const std::filesystem::path& dir, const SeriesBudget& budget);

}  // namespace shoal::controller
