// Brings what an attempt wrote to $SHOAL_OUTPUT to its job's coordinator, from a host that does not
// see the coordinator's directory: over a line of its own, which is dialled again when it was lost
// and then goes on where the coordinator stands. Used by launcher.cc between a program's end and
// its telling. docs/formats/rendezvous.md, "Outputs".
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "net/event_loop.h"
#include "rendezvous/logs/log_segment.h"
#include "rendezvous/protocol/coordinator_connection.h"

namespace shoal::rendezvous {

struct OutputUploaderOptions {
  std::function<Result<CoordinatorAddress>()> find;  // asked before every dial
  std::string token;
  LogKey key;                       // whose outputs
  std::filesystem::path directory;  // OUTPUTS/<role>-<index>.<attempt>; its parent is looked into
                                    // for the coordinator's sign that it is the same directory
  Duration give_up_after = std::chrono::seconds(30);  // since the line was lost
};

// Belongs to the loop's thread. Reads as fast as the line takes it.
class OutputUploader {
 public:
  // `on_end` comes once, from the loop, and may destroy the sender. OK: all is stored, and the
  // directory was removed unless it is the coordinator's own. Else what is lost and why; the
  // directory stays. What cannot be sent (devices, links that leave it) is lost too, the rest is
  // stored.
  static std::unique_ptr<OutputUploader> Start(net::Loop* loop, OutputUploaderOptions options,
                                               std::function<void(const Status&)> on_end);
  virtual ~OutputUploader() = default;
};

}  // namespace shoal::rendezvous
