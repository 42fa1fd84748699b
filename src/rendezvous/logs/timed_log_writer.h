// Writes a log segment and its time index (docs/formats/log-segments.md). Used wherever segments
// are written: by launchers, the coordinator and the controller's mirror.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "rendezvous/logs/log_segment.h"
#include "rendezvous/logs/log_times.h"

namespace shoal::rendezvous {

// Not thread-safe.
class TimedLogWriter {
 public:
  // See LogWriter::Open. `clock` must outlive the writer.
  static Result<TimedLogWriter> Open(const std::filesystem::path& directory, const LogKey& key,
                                     const Clock* clock = RealClock::Get()) {
    TRY_ASSIGN(LogWriter log, LogWriter::Open(directory, key));
    return TimedLogWriter(std::move(log), LogTimesWriter(directory / LogTimesFileName(key), clock));
  }

  // See LogWriter::Append.
  Result<int64_t> Append(int64_t offset, std::string_view bytes) {
    // The entry precedes the bytes, so that a reader who sees them finds their time.
    if (offset + static_cast<int64_t>(bytes.size()) > log_.size()) times_.Note(log_.size());
    return log_.Append(offset, bytes);
  }

  int64_t size() const { return log_.size(); }
  int fd() const { return log_.fd(); }

 private:
  TimedLogWriter(LogWriter log, LogTimesWriter times)
      : log_(std::move(log)), times_(std::move(times)) {}
  LogWriter log_;
  LogTimesWriter times_;
};

}  // namespace shoal::rendezvous
