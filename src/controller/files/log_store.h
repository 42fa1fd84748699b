// What the tasks of a job printed, read from its directory (docs/formats/log-segments.md): listed,
// from an offset, the last lines, and followed. `shoal logs` and later the server read it; the
// coordinator writes it.
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

// Which logs: all of the job, of a role, of one task, of one attempt.
struct LogSelection {
  std::string role;  // empty: all
  std::optional<int> index;
  std::optional<int> attempt;  // none: the latest of each task
};

// "worker-0", "worker/0", "worker" → a selection. InvalidArgument.
Result<LogSelection> ParseLogSelection(std::string_view task);

// Reads only; any number of processes at once. Thread-safe.
class LogStore {
 public:
  // `job_dir` need not have logs yet.
  explicit LogStore(std::filesystem::path job_dir);

  // All attempts there are, by role, index, attempt.
  Result<std::vector<LogInfo>> List() const;
  // Those that the selection names. NotFound says which there are.
  Result<std::vector<LogInfo>> Select(const LogSelection& selection) const;

  // At most `limit` bytes from `offset` on; empty at the end. NotFound.
  Result<std::string> Read(const LogKey& key, int64_t offset, size_t limit) const;
  // The offset at which the last `lines` lines begin. O(bytes of these lines).
  Result<int64_t> TailOffset(const LogKey& key, int lines) const;

  // Calls `on_bytes` on the loop's thread for everything from `from` on (0 for a log that is not
  // named) as it is written, new attempts included, until the follower is destroyed.
  class Follower {
   public:
    virtual ~Follower() = default;
    // Delivers what is there by now, without waiting for the kernel's word.
    virtual void Drain() = 0;
  };
  using OnBytes = std::function<void(const LogKey&, int64_t offset, std::string_view bytes)>;
  Result<std::unique_ptr<Follower>> Follow(net::Loop* loop, LogSelection selection,
                                           std::map<LogKey, int64_t> from, OnBytes on_bytes) const;

 private:
  std::filesystem::path directory_;
};

}  // namespace shoal::controller
