#include "controller/series/series_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "base/log.h"
#include "controller/series/segment.h"
#include "controller/series/series_files.h"
#include "controller/series/series_log.h"

namespace shoal::controller {
namespace {

constexpr size_t kMaxLogFile = size_t{64} << 20;
// Compaction may replace files between the listing and their opening.
constexpr int kListings = 4;
constexpr size_t kNamesShown = 8;

// An opened file: a segment, or the bytes of a log.
struct OpenedFile {
  std::optional<SegmentReader> segment;
  std::string log;
};

// False if the file has been replaced meanwhile. `only`: the series that is wanted; empty: all.
Result<bool> Open(const SeriesFile& file, std::string_view only, std::vector<OpenedFile>* opened) {
  OpenedFile one;
  Status failed;
  if (file.level < 0) {
    auto bytes = ReadFile(file.path, kMaxLogFile);
    if (bytes.ok()) one.log = std::move(*bytes);
    if (!bytes.ok()) failed = bytes.status();
  } else {
    auto segment =
        only.empty() ? SegmentReader::Open(file.path) : SegmentReader::OpenOne(file.path, only);
    if (segment.ok()) one.segment.emplace(std::move(*segment));
    if (!segment.ok()) failed = segment.status();
  }
  if (failed.code() == Code::kNotFound) return false;
  if (failed.code() == Code::kDataLoss) {
    LogWarning("a part of the curves is lost: {}", failed.message());
    return true;
  }
  if (!failed.ok()) return failed;
  opened->push_back(std::move(one));
  return true;
}

// All files at one moment, oldest first.
Result<std::vector<OpenedFile>> OpenAll(const std::filesystem::path& dir,
                                        std::string_view only = {}) {
  const FileAccessAs owner(dir.parent_path());
  for (int i = 0; i < kListings; ++i) {
    TRY_ASSIGN(const std::vector<SeriesFile> files, ListSeriesFiles(dir));
    std::vector<OpenedFile> opened;
    bool complete = true;
    for (const SeriesFile& file : files) {
      TRY_ASSIGN(const bool there, Open(file, only, &opened));
      complete = complete && there;
      if (!complete) break;
    }
    if (complete) return opened;
  }
  return Unavailable(dir.string() + ": its files change too often to be read; try again");
}

void AddPoints(const OpenedFile& file, const std::string& name, const SeriesRange& range,
               std::vector<SeriesBucket>* points) {
  const auto inside = [&](int64_t ms) { return ms >= range.from_ms && ms <= range.to_ms; };
  if (!file.segment) {
    int64_t wanted = -1, count = 0;
    const auto parsed = ParseSeriesLog(file.log, {[&](std::string_view one) {
                                                    if (one == name) wanted = count;
                                                    ++count;
                                                  },
                                                  [&](uint32_t number, const SeriesPoint& point) {
                                                    if (number == wanted && inside(point.ms))
                                                      points->push_back(BucketOf(point));
                                                  }});
    if (!parsed.ok()) LogWarning("a part of the curves is lost: {}", parsed.status().message());
    return;
  }
  const SegmentEntry* const entry = file.segment->Find(name);
  if (entry == nullptr || entry->first_ms > range.to_ms || entry->last_ms < range.from_ms) return;
  const auto read = file.segment->Read(*entry);
  if (!read.ok()) return LogWarning("a part of a curve is lost: {}", read.status().message());
  for (const SeriesBucket& bucket : *read) {
    if (inside(bucket.ms)) points->push_back(bucket);
  }
}

// A controller that attaches to a job hears the last point again.
void RemoveRepetitions(std::vector<SeriesBucket>* points) {
  const auto same = [](const SeriesBucket& a, const SeriesBucket& b) {
    return a.count == 1 && b.count == 1 && a.ms == b.ms && a.mean == b.mean;
  };
  points->erase(std::unique(points->begin(), points->end(), same), points->end());
}

// Parts of a bucket that lie in different files become one; then at most `most` equal periods.
std::vector<SeriesBucket> Combine(const std::vector<SeriesBucket>& points, size_t most) {
  std::vector<SeriesBucket> joined;
  for (const SeriesBucket& point : points) {
    const bool part = !joined.empty() && joined.back().ms == point.ms &&
                      (joined.back().count > 1 || point.count > 1);
    if (part) MergeBucket(point, &joined.back());
    if (!part) joined.push_back(point);
  }
  if (most == 0 || joined.size() <= most) return joined;
  const int64_t from = joined.front().ms;
  const double period =
      (static_cast<double>(joined.back().ms - from) + 1) / static_cast<double>(most);
  std::vector<SeriesBucket> few;
  int64_t last = -1;
  for (const SeriesBucket& point : joined) {
    const auto number = static_cast<int64_t>(static_cast<double>(point.ms - from) / period);
    if (number != last) {
      const auto begin = from + static_cast<int64_t>(static_cast<double>(number) * period);
      few.push_back({begin, 0, 0, 0, 0});
    }
    last = number;
    MergeBucket(point, &few.back());
  }
  return few;
}

void AddInfo(std::string_view name, uint64_t points, int64_t first, int64_t last,
             std::map<std::string, SeriesInfo, std::less<>>* all) {
  auto found = all->find(name);
  if (found == all->end()) {
    found = all->emplace(std::string(name), SeriesInfo{std::string(name), 0, first, last}).first;
  }
  SeriesInfo& info = found->second;
  info.points += points;
  info.first_ms = std::min(info.first_ms, first);
  info.last_ms = std::max(info.last_ms, last);
}

Status UnknownSeries(const std::filesystem::path& dir, const std::string& name) {
  TRY_ASSIGN(const std::vector<SeriesInfo> all, ListSeries(dir));
  if (all.empty()) return NotFound("the job has reported no numbers, so it has no series " + name);
  std::string text = "the job has no series " + name + "; it has ";
  for (size_t i = 0; i < all.size() && i < kNamesShown; ++i)
    text += (i == 0 ? "" : ", ") + all[i].name;
  if (all.size() > kNamesShown)
    text += " and " + std::to_string(all.size() - kNamesShown) + " more";
  return NotFound(text);
}

}  // namespace

Result<std::vector<SeriesInfo>> ListSeries(const std::filesystem::path& dir) {
  TRY_ASSIGN(const std::vector<OpenedFile> files, OpenAll(dir));
  std::map<std::string, SeriesInfo, std::less<>> all;
  for (const OpenedFile& file : files) {
    if (file.segment) {
      for (const SegmentEntry& entry : file.segment->entries())
        AddInfo(entry.name, entry.points, entry.first_ms, entry.last_ms, &all);
      continue;
    }
    std::vector<SeriesInfo> numbered;
    (void)ParseSeriesLog(file.log,
                         {[&](std::string_view name) {
                            numbered.push_back({std::string(name), 0, 0, 0});
                          },
                          [&](uint32_t number, const SeriesPoint& point) {
                            SeriesInfo& info = numbered[number];
                            const bool first = info.points++ == 0;
                            info.last = point.value;
                            info.first_ms = first ? point.ms : std::min(info.first_ms, point.ms);
                            info.last_ms = first ? point.ms : std::max(info.last_ms, point.ms);
                          }});
    for (const SeriesInfo& info : numbered) {
      if (info.points == 0) continue;
      AddInfo(info.name, info.points, info.first_ms, info.last_ms, &all);
      SeriesInfo& known = all.find(info.name)->second;
      known.last = info.last;
      known.has_last = true;
    }
  }
  std::vector<SeriesInfo> list;
  for (auto& [name, info] : all) list.push_back(std::move(info));
  return list;
}

Result<std::vector<SeriesBucket>> ReadSeries(const std::filesystem::path& dir,
                                             const std::string& name, const SeriesRange& range) {
  TRY_ASSIGN(const std::vector<OpenedFile> files, OpenAll(dir, name));
  std::vector<SeriesBucket> points;
  for (const OpenedFile& file : files) AddPoints(file, name, range, &points);
  if (points.empty()) {
    TRY_ASSIGN(const std::vector<SeriesInfo> all, ListSeries(dir));
    const bool known = std::ranges::binary_search(all, name, {}, &SeriesInfo::name);
    if (!known) return UnknownSeries(dir, name);
    return points;
  }
  std::ranges::stable_sort(points, {}, &SeriesBucket::ms);
  RemoveRepetitions(&points);
  return Combine(points, range.points);
}

}  // namespace shoal::controller
