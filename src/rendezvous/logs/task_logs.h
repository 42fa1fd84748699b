// The segments that a coordinator is writing. Used by coordinator.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "rendezvous/logs/log_segment.h"

namespace shoal::rendezvous {

// Lines that cannot be stored (the disk is full) are pending in memory and tried again, for
// kUnstoredLinesTimeout and up to kMaxUnstoredBytes of each log; then they are given up, and a line
// in the log tells of the gap (GapLine): a full disk costs lines, not the job.
inline constexpr Duration kUnstoredLinesTimeout = std::chrono::seconds(10);
inline constexpr size_t kMaxUnstoredBytes = size_t{4} << 20;

// Belongs to the loop's thread.
class TaskLogs {
 public:
  // `on_lost`: lines were given up; called once for each log.
  TaskLogs(std::filesystem::path directory,
           std::function<void(const LogKey&, const Status&)> on_lost,
           const Clock* clock = RealClock::Get())
      : directory_(std::move(directory)), on_lost_(std::move(on_lost)), clock_(clock) {}

  // A launcher says that it has written its log up to `bytes` itself; gives what of it is there. A
  // log that is not there (the directory was moved or removed) is lost.
  int64_t Written(const LogKey& key, int64_t bytes);
  // Stores bytes at an offset; gives the log's length.
  int64_t Store(const LogKey& key, int64_t offset, std::string_view bytes);
  // Whether somebody else is to keep the logs as well; then nothing is acknowledged before that one
  // has said, by OnMirrored, that it has it.
  void SetMirrored(bool mirrored);
  // It has this log up to here.
  void OnMirrored(const LogKey& key, int64_t bytes);
  // True if so much was stored since the last acknowledgement that one is due.
  bool AckDue(const LogKey& key) const;
  // The length to acknowledge now.
  int64_t Ack(const LogKey& key);
  // Open logs with bytes that were not acknowledged, after what is pending was tried again.
  std::vector<LogKey> Unacked();
  // How long the log is in its file; 0 if it is not open.
  int64_t size(const LogKey& key) const;

  // The attempt has ended: its log, whoever wrote it, is to be synced with the next commit.
  void Finish(const LogKey& key);
  // Adds the descriptors of finished logs, which stay open as long as what is returned.
  std::shared_ptr<void> TakeFinished(std::vector<int>* fds);

 private:
  struct Open {
    LogWriter writer;
    int64_t acked = 0;
    int64_t mirrored = INT64_MAX;  // with somebody else
    std::string pending = {};      // that could not be stored, …
    int64_t pending_offset = 0;    // … from this offset …
    TimePoint pending_since{};     // … since then
    int64_t given_up = 0;          // up to here nothing more is stored
    int64_t stored() const { return std::min(std::max(writer.size(), given_up), mirrored); }
  };
  void Buffer(const LogKey& key, Open* log, int64_t offset, std::string_view bytes);
  // Tries again; gives up what has been pending for too long, or at once if it is the last time.
  void Retry(const LogKey& key, Open* log, bool last);
  void Lost(const LogKey& key, const Status& why);

  const std::filesystem::path directory_;
  const std::function<void(const LogKey&, const Status&)> on_lost_;
  const Clock* const clock_;
  std::map<LogKey, Open> open_;
  std::set<LogKey> finished_;
  std::set<LogKey> lost_;
  int64_t initial_mirrored_ = INT64_MAX;  // of a log that is opened
};

}  // namespace shoal::rendezvous
