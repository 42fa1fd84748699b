// Searches the logs of many jobs, newest job first, in steps that a server can put between other
// work. Used by `shoal logs --all-jobs` and GET /api/v1/logs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "controller/files/log_lines.h"
#include "controller/files/log_store.h"
#include "rendezvous/logs/log_archive.h"

namespace shoal::controller {

// What to look for. Plain value, as commands and requests state it.
struct LogSearchRequest {
  std::string team;        // only its jobs; empty: all jobs that may be seen
  LogSelection selection;  // without an attempt: all of them
  std::string grep;        // LinePattern; empty: every line
  bool ignore_case = false;
  std::optional<WallTime> since{};
  std::optional<WallTime> until{};
  bool times = false;         // FoundLine::time is wanted
  int64_t limit = INT64_MAX;  // lines at most
};

// InvalidArgument for a bad pattern.
Result<LineFilter> MakeLineFilter(const LogSearchRequest& request);

struct FoundLine {
  std::string_view job;
  LogKey key;
  LogLine line;
};
// False ends the search.
using OnFoundLine = std::function<bool(const FoundLine&)>;

// A job whose logs are searched.
struct LogSource {
  std::string job;
  std::filesystem::path directory;
};
struct LogSources {
  std::vector<LogSource> jobs;  // newest first
  std::string next;             // of the next, older page; empty: there are no more
};

// Not thread-safe; may be used by one thread after another.
class LogSearch {
 public:
  // A page of jobs, from the first one (an empty cursor) or from the `next` of another page.
  using NextSources = std::function<Result<LogSources>(const std::string& cursor)>;

  LogSearch(NextSources next_sources, LineFilter filter, LogSelection selection, bool times)
      : next_sources_(std::move(next_sources)),
        filter_(std::move(filter)),
        selection_(std::move(selection)),
        times_(times) {}

  // Goes on at a position of an earlier search with the same request. InvalidArgument.
  Status Resume(std::string_view position);

  // Searches at least `bytes` more bytes, or to the end, or until `on_found` returns false. False
  // at the end. Logs that are removed meanwhile are skipped. Memory: a piece and a line.
  Result<bool> Step(int64_t bytes, const OnFoundLine& on_found);

  // Behind what was searched, for Resume. Printable ASCII.
  std::string position() const;

 private:
  Result<bool> NextLog();
  void StartLog(const LogInfo& log);
  Status Open(const LogKey& key);
  Result<std::string_view> Read(const LogKey& key);
  std::filesystem::path directory() const;

  const NextSources next_sources_;
  const LineFilter filter_;
  const LogSelection selection_;
  const bool times_;

  LogSources sources_;
  std::string page_;        // cursor of `sources_`
  std::string resume_job_;  // where to go on in the first page; empty: at its beginning
  LogKey resume_log_;
  int64_t resume_offset_ = 0;
  bool listed_ = false;                            // sources_ are those of page_
  size_t job_ = 0;                                 // in sources_
  bool opened_ = false;                            // logs_ are those of job_
  std::vector<LogInfo> logs_;                      // of that job, selected
  size_t log_ = 0;                                 // in logs_
  int64_t offset_ = 0;                             // of the next byte
  std::unique_ptr<LineScanner> scanner_;           // of logs_[log_]; none: not begun
  UniqueFd file_;                                  // likewise, of a segment
  std::optional<rendezvous::LogArchive> archive_;  // likewise, of a compressed log
  std::string buffer_;                             // what Read returns
};

}  // namespace shoal::controller
