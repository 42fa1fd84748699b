// Reads the output of a job's tasks from its directory (docs/formats/log-segments.md): listing,
// reading from an offset, the last lines, following. Used by `shoal logs`; the coordinator writes
// the files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/event_loop.h"
#include "rendezvous/client/coordinator_client.h"

namespace shoal::controller {

using rendezvous::LogKey;

struct LogInfo {
  LogKey key;
  int64_t bytes = 0;
};

// Selects logs: of the whole job, a role, a task, or one attempt.
struct LogSelection {
  std::string role;  // empty: all
  std::optional<int> index;
  std::optional<int> attempt;  // none: the latest attempt of each task
};

// Parses "worker-0", "worker/0" or "worker". InvalidArgument.
Result<LogSelection> ParseLogSelection(std::string_view task);

// The selected ones of all logs of a job, in their order. NotFound lists the existing ones.
// `removed`: see LogStore::Removed.
Result<std::vector<LogInfo>> SelectLogs(const std::vector<LogInfo>& all,
                                        const LogSelection& selection,
                                        const std::string& removed = "");

// Read-only; any number of processes may read at once. Thread-safe.
class LogStore {
 public:
  // `job_dir` may be without logs.
  explicit LogStore(std::filesystem::path job_dir);

  // All stored attempts, ordered by role, index and attempt.
  Result<std::vector<LogInfo>> List() const;
  // Why the logs of a job are gone before its record: "removed by retention on …". Empty: they are
  // not.
  std::string Removed() const;
  // The selected logs. NotFound lists the existing ones, or says Removed.
  Result<std::vector<LogInfo>> Select(const LogSelection& selection) const;

  // At most `limit` bytes from `offset`; empty at the end. NotFound.
  Result<std::string> Read(const LogKey& key, int64_t offset, size_t limit) const;
  // Offset at which the last `lines` lines begin. O(bytes of these lines).
  Result<int64_t> TailOffset(const LogKey& key, int lines) const;

  // Calls `on_bytes` on the loop's thread for all bytes from the offsets `from` on (0 for a log
  // that is not in it) as they are written, including new attempts, until the follower is
  // destroyed. The loop must outlive the follower.
  class Follower {
   public:
    virtual ~Follower() = default;
    // Delivers the bytes written so far, without waiting for a notification.
    virtual void Drain() = 0;
  };
  using OnBytes = std::function<void(const LogKey&, int64_t offset, std::string_view bytes)>;
  Result<std::unique_ptr<Follower>> Follow(net::Loop* loop, LogSelection selection,
                                           std::map<LogKey, int64_t> from, OnBytes on_bytes) const;

 private:
  std::filesystem::path directory_;
};

}  // namespace shoal::controller
