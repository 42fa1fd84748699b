#include "controller/series/series_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "base/log.h"
#include "controller/series/segment.h"
#include "controller/series/series_log.h"

namespace shoal::controller {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLogFile = size_t{64} << 20;

bool TakeNumber(std::string_view* text, uint64_t* value) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *value);
  if (error != std::errc() || *value == 0 || *value > (uint64_t{1} << 48)) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

bool TakeText(std::string_view* text, std::string_view expected) {
  if (!text->starts_with(expected)) return false;
  text->remove_prefix(expected.size());
  return true;
}

// "7.log", "0-1-7.seg".
bool ParseName(std::string_view name, SeriesFile* file) {
  std::string_view rest = name;
  if (TakeNumber(&rest, &file->first) && rest == ".log") {
    file->level = -1;
    file->last = file->first;
    return true;
  }
  rest = name;
  if (rest.empty() || rest[0] < '0' || rest[0] >= '0' + kSeriesLevels) return false;
  file->level = rest[0] - '0';
  rest.remove_prefix(1);
  return TakeText(&rest, "-") && TakeNumber(&rest, &file->first) && TakeText(&rest, "-") &&
         TakeNumber(&rest, &file->last) && rest == ".seg" && file->first <= file->last;
}

fs::path SegmentPath(const fs::path& dir, int level, uint64_t first, uint64_t last) {
  return dir / fmt::format("{}-{}-{}.seg", level, first, last);
}

bool Replaces(const SeriesFile& newer, const SeriesFile& old) {
  return newer.level > old.level && newer.first <= old.first && old.last <= newer.last;
}

void Remove(const std::vector<SeriesFile>& files) {
  for (const SeriesFile& file : files) {
    std::error_code error;
    fs::remove(file.path, error);  // a file that stays is stale, and removed by the next call
  }
}

bool EarlierBucket(const SeriesBucket& a, const SeriesBucket& b) { return a.ms < b.ms; }

// One raw segment of the points of some logs.
Status ConvertLogs(const fs::path& dir, const std::vector<SeriesFile>& logs) {
  std::map<std::string, std::vector<SeriesBucket>> series;
  for (const SeriesFile& log : logs) {
    TRY_ASSIGN(const std::string bytes, ReadFile(log.path, kMaxLogFile));
    std::vector<std::vector<SeriesBucket>*> numbered;
    const auto parsed = ParseSeriesLog(
        bytes, {[&](std::string_view name) { numbered.push_back(&series[std::string(name)]); },
                [&](uint32_t number, const SeriesPoint& point) {
                  numbered[number]->push_back(BucketOf(point));
                }});
    if (!parsed.ok()) LogWarning("{}: {}", log.path.string(), parsed.status().message());
  }
  TRY_ASSIGN(SegmentWriter out,
             SegmentWriter::Create(SegmentPath(dir, 0, logs.front().first, logs.back().last), 0));
  for (auto& [name, points] : series) {
    std::ranges::stable_sort(points, EarlierBucket);
    TRY(out.Add(name, points));
    points = {};
  }
  TRY(out.Finish());
  Remove(logs);
  return Status::Ok();
}

// In periods of `period` ms, ascending.
std::vector<SeriesBucket> Coarsen(std::vector<SeriesBucket> points, int64_t period) {
  std::ranges::stable_sort(points, EarlierBucket);
  std::vector<SeriesBucket> buckets;
  for (const SeriesBucket& point : points) {
    const int64_t number = (point.ms >= 0 ? point.ms : point.ms - period + 1) / period;
    const int64_t begin = number * period;
    if (buckets.empty() || buckets.back().ms != begin) buckets.push_back({begin, 0, 0, 0, 0});
    MergeBucket(point, &buckets.back());
  }
  return buckets;
}

// One segment of the next level instead of these, series by series.
Status CoarsenSegments(const fs::path& dir, const std::vector<SeriesFile>& files) {
  const int level = files.front().level + 1;
  std::vector<SegmentReader> readers;
  std::set<std::string> names;
  for (const SeriesFile& file : files) {
    auto reader = SegmentReader::Open(file.path);
    if (!reader.ok()) {
      LogWarning("a part of the curves is lost: {}", reader.status().message());
      continue;
    }
    for (const SegmentEntry& entry : reader->entries()) names.insert(entry.name);
    readers.push_back(std::move(*reader));
  }
  const int64_t period = kSeriesPeriods[level];
  TRY_ASSIGN(SegmentWriter out,
             SegmentWriter::Create(SegmentPath(dir, level, files.front().first, files.back().last),
                                   period));
  for (const std::string& name : names) {
    std::vector<SeriesBucket> points;
    for (const SegmentReader& reader : readers) {
      const SegmentEntry* const entry = reader.Find(name);
      if (entry == nullptr) continue;
      const auto part = reader.Read(*entry);
      if (part.ok()) points.insert(points.end(), part->begin(), part->end());
      if (!part.ok()) LogWarning("a part of a curve is lost: {}", part.status().message());
    }
    TRY(out.Add(name, Coarsen(std::move(points), period)));
  }
  TRY(out.Finish());
  Remove(files);
  return Status::Ok();
}

std::vector<SeriesFile> OfLevel(const std::vector<SeriesFile>& files, int level) {
  std::vector<SeriesFile> some;
  std::ranges::copy_if(files, std::back_inserter(some),
                       [&](const SeriesFile& file) { return file.level == level; });
  return some;
}

uint64_t TotalBytes(const std::vector<SeriesFile>& files) {
  uint64_t bytes = 0;
  for (const SeriesFile& file : files) bytes += file.bytes;
  return bytes;
}

// The oldest files, with about half of the level's bytes.
std::vector<SeriesFile> OldestHalf(const std::vector<SeriesFile>& files, uint64_t budget) {
  std::vector<SeriesFile> oldest;
  uint64_t bytes = 0;
  for (const SeriesFile& file : files) {
    if (!oldest.empty() && bytes + file.bytes > budget / 2) break;
    bytes += file.bytes;
    oldest.push_back(file);
  }
  return oldest;
}

}  // namespace

fs::path SeriesDir(const fs::path& job_dir) { return job_dir / "series"; }

fs::path SeriesLogPath(const fs::path& dir, uint64_t number) {
  return dir / fmt::format("{}.log", number);
}

Result<std::vector<SeriesFile>> ListSeriesFiles(const fs::path& dir,
                                                std::vector<SeriesFile>* stale) {
  const FileAccessAs owner(dir.parent_path());
  std::vector<SeriesFile> all;
  std::error_code error;
  fs::directory_iterator entry(dir, error);
  if (error == std::errc::no_such_file_or_directory) return all;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    SeriesFile file{.path = entry->path()};
    if (!ParseName(file.path.filename().string(), &file)) continue;
    std::error_code gone;
    file.bytes = fs::file_size(file.path, gone);
    if (!gone) all.push_back(std::move(file));
  }
  if (error) return ErrnoStatus(error.value(), dir.string());
  std::ranges::sort(all, [](const SeriesFile& a, const SeriesFile& b) {
    return std::pair(a.first, -a.level) < std::pair(b.first, -b.level);
  });
  // In this order a file comes after those that replace it, and they reach furthest.
  std::vector<SeriesFile> current;
  for (SeriesFile& file : all) {
    const bool old = std::ranges::any_of(
        current, [&](const SeriesFile& newer) { return Replaces(newer, file); });
    if (!old) current.push_back(std::move(file));
    if (old && stale != nullptr) stale->push_back(std::move(file));
  }
  return current;
}

Status CompactSeries(const fs::path& dir, const SeriesBudget& budget) {
  const FileAccessAs owner(dir.parent_path());
  std::vector<SeriesFile> stale;
  TRY_ASSIGN(std::vector<SeriesFile> files, ListSeriesFiles(dir, &stale));
  Remove(stale);
  std::vector<SeriesFile> logs = OfLevel(files, -1);
  if (!logs.empty()) logs.pop_back();
  if (!logs.empty() && (logs.size() >= budget.most_logs || TotalBytes(logs) >= budget.log_bytes))
    TRY(ConvertLogs(dir, logs));
  for (int level = 0; level < kSeriesLevels; ++level) {
    for (;;) {
      TRY_ASSIGN(files, ListSeriesFiles(dir));
      const std::vector<SeriesFile> some = OfLevel(files, level);
      if (TotalBytes(some) <= budget.levels[level]) break;
      const std::vector<SeriesFile> oldest = OldestHalf(some, budget.levels[level]);
      if (level + 1 < kSeriesLevels) {
        TRY(CoarsenSegments(dir, oldest));
      } else {
        Remove(oldest);
      }
    }
  }
  return Status::Ok();
}

}  // namespace shoal::controller
