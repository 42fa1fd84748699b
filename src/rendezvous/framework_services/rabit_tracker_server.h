// Rabit's tracker as a server, and as the process of a task: role `tracker` of framework rabit runs
// `shoal rabit-tracker` (docs/adr/0060).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "net/event_loop.h"

namespace shoal::rendezvous {

struct RabitTrackerOptions {
  int workers = 0;                 // 1 … 100,000
  std::string host = "127.0.0.1";  // numeric, to listen at
  uint16_t port = 0;               // 0: any
};

// Serves until destroyed. Belongs to the loop's thread.
class RabitTrackerServer {
 public:
  // Gets lines for people: what a worker printed, or an error of one.
  using OnLine = std::function<void(const std::string& line)>;
  // InvalidArgument for the number of workers; FailedPrecondition for a port that is taken.
  static Result<std::unique_ptr<RabitTrackerServer>> Start(net::Loop* loop,
                                                           const RabitTrackerOptions& options,
                                                           OnLine on_line);
  virtual ~RabitTrackerServer() = default;
  virtual uint16_t port() const = 0;
};

// Serves until SIGTERM or SIGINT; lines go to standard output.
Status RunRabitTracker(const RabitTrackerOptions& options);

}  // namespace shoal::rendezvous
