// Watches who listens on a task's leased ports while its program runs: it must be the task's own
// tree, and nobody beside it. Used by attempt.cc.
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
  Duration again = std::chrono::milliseconds(20);  // before somebody is called a thief
};

class PortConflictWatcher {
 public:
  // `tree` gives the live processes of the task; asked only when who listens has changed.
  // `on_conflict` is called once, with the port and a sentence that names who listens; the watch
  // may be destroyed in it. Belongs to the loop's thread. Cost: one read of /proc/net/tcp and tcp6
  // a look.
  static std::unique_ptr<PortConflictWatcher> Start(
      net::Loop* loop, std::vector<uint16_t> ports, std::function<std::vector<pid_t>()> tree,
      std::function<void(uint16_t port, const std::string& who)> on_conflict,
      PortConflictWatcherTimes times = {});
  virtual ~PortConflictWatcher() = default;
};

// After a program's bad end: who has one of its ports, as a sentence; empty if nobody does.
// Somebody listens, or holds it without listening.
std::string DescribePortConflict(const std::vector<uint16_t>& ports);

// The same by the program's own word: its last line says that an address is in use, and whoever had
// it has gone since. It may be about a port that is none of these; so trust_reported_conflict it a
// few times only.
std::string DescribeReportedPortConflict(const std::vector<uint16_t>& ports,
                                         std::string_view last_line);

}  // namespace shoal::rendezvous
