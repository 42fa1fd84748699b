// Keeps the numbers that the tasks of a running job report, and their use of processor and memory.
// Used by job_run.cc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "controller/series/series_log.h"
#include "controller/threads/executor.h"
#include "net/event_loop.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::controller {

// All pointers must outlive the recorder; `executor` may be null: then the loop's thread writes.
struct SeriesRecorderOptions {
  std::filesystem::path dir;  // SeriesDir of the job; made with the first point
  net::Loop* loop = nullptr;
  const Clock* clock = nullptr;
  Executor* executor = nullptr;
};

// Must be used on the loop's thread. Writes what has come after kWriteDelay, or earlier at
// kBlockBytes: a killed controller loses at most that. Errors of the disk are logged once and cost
// points, never the job. Memory: the block, and the names of the series (at most kMaxSeries).
class SeriesRecorder {
 public:
  static constexpr Duration kWriteDelay = std::chrono::seconds(2);
  static constexpr size_t kBlockBytes = 64 << 10;

  explicit SeriesRecorder(SeriesRecorderOptions options);
  // Drops what is not written; Finish first.
  ~SeriesRecorder();
  SeriesRecorder(const SeriesRecorder&) = delete;
  SeriesRecorder& operator=(const SeriesRecorder&) = delete;

  // Adds the numbers of a progress or usage event; ignores others.
  void AddEvent(const rendezvous::JobEvent& event);
  // Writes what has come.
  void Finish() { Write(); }

 private:
  class Files;  // writes blocks; outlives this object while a call runs
  // The last usage of a task.
  struct Usage {
    int attempt = -1;
    int64_t ms = 0;
    double cpu_seconds = 0;
  };
  struct TaskState {
    Usage usage;
    std::string progress_at;  // of its last progress, which is repeated to a new connection
    std::string usage_at;
  };

  void AddProgress(const rendezvous::JobEvent& event);
  void AddUsage(const rendezvous::JobEvent& event, TaskState* task);
  void Add(const rendezvous::JobEvent& event, std::string_view metric, double value);
  void Write();

  const SeriesRecorderOptions options_;
  const std::shared_ptr<Files> files_;
  std::unique_ptr<SeriesLogEncoder> encoder_;  // of the present log
  size_t log_bytes_ = 0;                       // written to it
  int64_t now_ms_ = 0;                         // of the event
  std::map<std::pair<std::string, int>, TaskState> tasks_;
  net::Loop::Id timer_ = 0;
};

}  // namespace shoal::controller
