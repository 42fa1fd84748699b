// Selects lines of a log by a regular expression and by time, as its bytes arrive. Used by `shoal
// logs`, which reads bytes from files or a server, and by the search over many logs (log_search.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "controller/files/line_pattern.h"
#include "rendezvous/logs/log_times.h"

namespace shoal::controller {

// A line without its line feed. A longer one than kLongestLine counts as several.
struct LogLine {
  int64_t offset = 0;              // of its first byte in the log
  std::string_view text;           // valid during the call
  std::optional<WallTime> time{};  // when its first byte was stored, if that was looked up
};
inline constexpr size_t kLongestLine = size_t{1} << 20;

// A line is selected if it fulfils all conditions. Plain value.
struct LineFilter {
  std::shared_ptr<const LinePattern> grep;  // none: every line
  std::optional<WallTime> since{};          // at or after
  std::optional<WallTime> until{};          // before

  bool timed() const { return since || until; }
  bool any() const { return grep != nullptr || timed(); }
};

// The lines of one log. Not thread-safe.
class LineScanner {
 public:
  // The times of the log's bytes from an offset on, as rendezvous::ReadLogTimes; called only if the
  // filter has times or `with_times`.
  using TimesFrom = std::function<Result<rendezvous::LogTimes>(int64_t from)>;
  // False ends the scan.
  using OnLine = std::function<bool(const LogLine&)>;

  LineScanner(LineFilter filter, bool with_times, TimesFrom times_from)
      : filter_(std::move(filter)),
        with_times_(with_times || filter_.timed()),
        times_from_(std::move(times_from)) {}

  // Takes the bytes at `offset`, which follow the earlier ones (otherwise the scan begins anew) and
  // calls `on_line` with the selected lines that they complete. Returns false once `on_line` has.
  // The error is one of `times_from`. Cost: a search of the bytes, and a copy of unfinished lines.
  Result<bool> Add(int64_t offset, std::string_view bytes, const OnLine& on_line);
  // Where the unfinished line begins: all lines before it have been looked at.
  int64_t at() const { return at_; }
  // The log ends here: takes what is left as a line.
  Result<bool> Finish(const OnLine& on_line);

 private:
  Result<bool> AddPiece(std::string_view bytes, const OnLine& on_line);
  // Whole lines at `offset`.
  Result<bool> Scan(int64_t offset, std::string_view lines, const OnLine& on_line);
  Status LoadTimes(int64_t offset, int64_t end);
  bool Within(const std::optional<WallTime>& time) const;

  const LineFilter filter_;
  const bool with_times_;
  const TimesFrom times_from_;
  std::string rest_;  // of an unfinished line
  int64_t at_ = 0;    // offset of its first byte
  rendezvous::LogTimes times_;
  int64_t covered_from_ = 0;  // times_ knows the bytes from here on
  int64_t covered_to_ = 0;    // up to here
};

// Where a search for lines since a time may begin: all earlier lines are older. Reads the index
// until it finds such an entry.
Result<int64_t> OffsetSince(const LineScanner::TimesFrom& times_from, WallTime since);

}  // namespace shoal::controller
