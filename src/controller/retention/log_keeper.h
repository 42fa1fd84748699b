// Keeps the logs of a server's jobs small and within the limits of their teams: compresses the logs
// of attempts that have ended, and removes those of the oldest ended jobs (ADR 291).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "controller/files/log_store.h"
#include "controller/files/state_home.h"
#include "controller/store/store.h"
#include "controller/threads/loop_task_group.h"
#include "net/event_loop.h"

namespace shoal::controller {

// Of a team. Without one a log stays until its job's record is removed.
struct LogLimits {
  std::optional<Duration> keep;  // after the job's end
  std::optional<int64_t> bytes;  // on disk, of all jobs of the team
};

struct LogKeeperOptions {
  Store* store = nullptr;  // must outlive it, as must the clock
  StateHome home{std::filesystem::path()};
  const Clock* clock = nullptr;
  std::function<Result<LogLimits>(const std::string& team)> limits_of;  // on the keeper's thread
};

struct LogKeeperCounters {
  uint64_t compressed = 0;        // logs
  uint64_t compressed_bytes = 0;  // before
  uint64_t archive_bytes = 0;     // after
  uint64_t removed_jobs = 0;      // whose logs were removed
  uint64_t removed_bytes = 0;
  uint64_t failures = 0;
};

// Works on a thread of its own, which the kernel schedules after others. Thread-safe.
class LogKeeper {
 public:
  // Logs of fewer bytes are not compressed: they take a block of the disk in any case.
  static constexpr int64_t kLeastBytes = 4096;
  static constexpr Duration kInterval = std::chrono::minutes(10);  // between looks at the limits
  // After a job's end, of a team with a limit of bytes.
  static constexpr Duration kPause = std::chrono::seconds(30);

  // Looks at all jobs once, then at what changes.
  static Result<std::unique_ptr<LogKeeper>> Start(LogKeeperOptions options);
  ~LogKeeper();
  LogKeeper(const LogKeeper&) = delete;
  LogKeeper& operator=(const LogKeeper&) = delete;

  // A team has other limits.
  void CheckLimits();
  LogKeeperCounters counters() const;

 private:
  explicit LogKeeper(LogKeeperOptions options);
  void Begin();
  void CompressAll(const std::string& cursor);
  void CompressEnded(const std::string& job, bool job_ended);
  void CompressOne(const std::string& job, const std::filesystem::path& logs, const LogKey& key);
  void ReadNewEvents();
  void Enforce();
  Status EnforceAll();
  Status EnforceJob(const JobSummary& job, WallTime now);
  Result<LogLimits> LimitsOf(const std::string& team);
  int64_t BytesOf(const JobSummary& job);
  Status RemoveLogs(const JobSummary& job, const std::string& why, WallTime now);
  void TryToRemoveLogs(const JobSummary& job, const std::string& why, WallTime now);
  void EnforceAfter(Duration delay);

  const LogKeeperOptions options_;
  std::atomic<bool> ending_{false};
  std::atomic<bool> reading_{false};  // ReadNewEvents is posted
  std::atomic<uint64_t> compressed_{0}, compressed_bytes_{0}, archive_bytes_{0}, removed_jobs_{0},
      removed_bytes_{0}, failures_{0};
  // Of the loop's thread.
  int64_t position_ = 0;
  std::map<std::string, int64_t> bytes_;     // of the logs of ended jobs, by id
  std::map<std::string, int64_t> used_;      // by team, during EnforceAll
  std::map<std::string, LogLimits> limits_;  // likewise
  net::Loop::Id timer_ = 0;
  TimePoint timer_at_{};
  net::Loop loop_;
  LoopTaskGroup tasks_{&loop_};
  std::unique_ptr<Store::Watcher> watcher_;
  std::thread thread_;
};

}  // namespace shoal::controller
