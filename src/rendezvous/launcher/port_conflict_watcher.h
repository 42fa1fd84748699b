// Watches which process listens on a task's leased ports while its program runs: only the task's
// own process tree may. Used by attempt.cc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "net/event_loop.h"

namespace shoal::rendezvous {

struct PortConflictWatcherTimes {
  Duration first = std::chrono::milliseconds(20);  // then twice as long each time, up to
  Duration every = std::chrono::milliseconds(500);
  Duration again = std::chrono::milliseconds(20);  // a second look before a conflict is reported
};

class PortConflictWatcher {
 public:
  // `tree` gives the task's live processes; called only when the listener has changed.
  // `on_conflict` is called once, with the port and a sentence that names the other process; the
  // watcher may be destroyed in it. Belongs to the loop's thread. Cost: one read of /proc/net/tcp
  // and tcp6 per look.
  static std::unique_ptr<PortConflictWatcher> Start(
      net::Loop* loop, std::vector<uint16_t> ports, std::function<std::vector<pid_t>()> tree,
      std::function<void(uint16_t port, const std::string& who)> on_conflict,
      PortConflictWatcherTimes times = {});
  virtual ~PortConflictWatcher() = default;
};

// After a program's bad end: a sentence that names the process that listens on one of its ports or
// holds it otherwise; empty if none does.
std::string DescribePortConflict(const std::vector<uint16_t>& ports);

// The same from the program's own output: its last line says that an address is in use, but no
// process has the port any more. The line may be about another port, so the caller accepts it only
// a few times.
std::string DescribeReportedPortConflict(const std::vector<uint16_t>& ports,
                                         std::string_view last_line);

}  // namespace shoal::rendezvous
