// The logs of a job's attempts at its coordinator: stores what launchers send, acknowledges it,
// tells the publisher of it, and holds an attempt's end back until its last lines are stored or
// given up. Used by coordinator.cc; the files are TaskLogs'.
//
// Belongs to the loop's thread.
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

#include "base/json.h"
#include "base/status.h"
#include "net/event_loop.h"
#include "rendezvous/coordinator/event_publisher.h"
#include "rendezvous/coordinator/member_table.h"
#include "rendezvous/lifecycle/coordinator_core.h"
#include "rendezvous/logs/task_logs.h"

namespace shoal::rendezvous {

struct LogCollectorCallbacks {
  // A sentence for people.
  std::function<void(const std::string&)> note;
  // The end of an attempt whose log is complete.
  std::function<void(const ProgramEnded&)> ended;
};

class LogCollector {
 public:
  // `core`, `members` and `publisher` outlive it. `directory`: of the segments.
  LogCollector(net::Loop* loop, const std::filesystem::path& directory, const CoordinatorCore* core,
               MemberTable* members, EventPublisher* publisher, LogCollectorCallbacks calls);
  ~LogCollector();
  LogCollector(const LogCollector&) = delete;

  // A log frame of a launcher. Its own task counts, not the names in the frame; an error if it has
  // none, or for an attempt that was never started.
  Status Store(MemberId member, std::string_view frame);
  // "log_grew": the launcher has written the log file itself.
  Status HandleGrowth(MemberId member, const json::object& message);
  // "log_kept": a controller has mirrored a log so far; until then the launcher keeps it.
  Status HandleMirrored(const json::object& message);
  // Whether a controller mirrors the logs.
  void SetMirrored(bool mirrored) { logs_.SetMirrored(mirrored); }
  // A program has ended; its log bytes came before, on the same connection. `ended` is given to the
  // callback once the log is complete. `task`: of the launcher; none: it has none, nor a log.
  void HoldEnd(std::optional<int> task, ProgramEnded ended);
  // To be called regularly: stores what could not be stored, and acknowledges what is.
  void AckAll();
  // For the next commit; see TaskLogs.
  std::shared_ptr<void> TakeFinished(std::vector<int>* fds) { return logs_.TakeFinished(fds); }

 private:
  void Release(const LogKey& key);
  void Ack(MemberId member, const LogKey& key);

  net::Loop* const loop_;
  const CoordinatorCore* const core_;
  MemberTable* const members_;
  EventPublisher* const publisher_;
  const LogCollectorCallbacks calls_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  TaskLogs logs_;
  std::map<LogKey, ProgramEnded> held_ends_;
};

}  // namespace shoal::rendezvous
