// The log segments that a coordinator writes or syncs. Used by coordinator.cc.
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
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "rendezvous/logs/log_segment.h"
#include "rendezvous/logs/timed_log_writer.h"

namespace shoal::rendezvous {

// Lines that cannot be stored (a full disk) are buffered and tried again for kUnstoredLinesTimeout
// and up to kMaxUnstoredBytes per log. Then they are given up and a line in the log marks the gap
// (GapLine): a full disk costs lines, not the job.
inline constexpr Duration kUnstoredLinesTimeout = std::chrono::seconds(10);
inline constexpr size_t kMaxUnstoredBytes = size_t{4} << 20;

// Stores bytes, decides when launchers get acknowledgements, and hands finished logs to the next
// commit. Belongs to the loop's thread.
class TaskLogs {
 public:
  // `on_lost`: lines were given up; called once per log.
  TaskLogs(std::filesystem::path directory,
           std::function<void(const LogKey&, const Status&)> on_lost,
           const Clock* clock = RealClock::Get())
      : directory_(std::move(directory)), on_lost_(std::move(on_lost)), clock_(clock) {}

  // A launcher has written its log up to `bytes` itself. Returns how much of it this process sees;
  // a log that is missing (its directory was moved or removed) is lost.
  int64_t Written(const LogKey& key, int64_t bytes);
  // Stores bytes at an offset. Returns the log's length.
  int64_t Store(const LogKey& key, int64_t offset, std::string_view bytes);
  // Whether a controller mirrors the logs. Then bytes are acknowledged only after OnMirrored.
  void SetMirrored(bool mirrored);
  // The controller has this log up to `bytes`.
  void OnMirrored(const LogKey& key, int64_t bytes);
  // True if enough was stored since the last acknowledgement.
  bool AckDue(const LogKey& key) const;
  // The length to acknowledge now.
  int64_t Ack(const LogKey& key);
  // Retries buffered bytes, then gives the open logs with unacknowledged bytes.
  std::vector<LogKey> Unacked();
  // Length of the log's file; 0 if it is not open.
  int64_t size(const LogKey& key) const;

  // The attempt has ended: its log is synced with the next commit. False: not yet, because bytes or
  // the line that marks a gap could not be stored; see RetryEnded.
  bool Finish(const LogKey& key);
  // Retries such logs, with the same limit; so do Unacked and TakeFinished. True: none is left.
  bool RetryEnded();
  // To be called when such a log is complete.
  void OnFinishedLate(std::function<void(const LogKey&)> call) { on_finished_ = std::move(call); }
  // Appends the descriptors of finished logs. They stay open as long as the returned object lives.
  std::shared_ptr<void> TakeFinished(std::vector<int>* fds);

 private:
  struct Open {
    TimedLogWriter writer;
    int64_t acked = 0;
    int64_t mirrored = INT64_MAX;  // by the controller
    std::string pending = {};      // bytes that could not be stored
    int64_t pending_offset = 0;    // their offset
    TimePoint pending_since{};     // since when
    int64_t given_up = 0;          // bytes below this offset are not stored any more
    int64_t stored() const { return std::min(std::max(writer.size(), given_up), mirrored); }
  };
  void Buffer(const LogKey& key, Open* log, int64_t offset, std::string_view bytes);
  // Retries; gives up bytes that were buffered for too long.
  void Retry(const LogKey& key, Open* log);
  // All that an ended attempt's log is to hold is stored, or was given up.
  bool Settle(const LogKey& key, Open* log);
  void Lost(const LogKey& key, const Status& why);

  const std::filesystem::path directory_;
  const std::function<void(const LogKey&, const Status&)> on_lost_;
  const Clock* const clock_;
  std::map<LogKey, Open> open_;
  std::set<LogKey> finished_;
  std::set<LogKey> unfinished_;  // of ended attempts, with bytes or a gap line to be stored
  std::set<LogKey> lost_;
  std::function<void(const LogKey&)> on_finished_ = [](const LogKey&) {};
  int64_t initial_mirrored_ = INT64_MAX;  // of a log that is opened
};

}  // namespace shoal::rendezvous
