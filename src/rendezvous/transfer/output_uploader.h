// Uploads what an attempt wrote to $SHOAL_OUTPUT from a host that does not see the coordinator's
// directory, over a connection of its own. After a reconnection the upload resumes where the
// coordinator stands. Used by launcher.cc between a program's end and reporting it.
// docs/formats/rendezvous.md, "Outputs".
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
  std::function<Result<CoordinatorAddress>()> find;  // called before every dial
  std::string token;
  LogKey key;                       // whose outputs
  std::filesystem::path directory;  // OUTPUTS/<role>-<index>.<attempt>; its parent is looked into
                                    // for the coordinator's sign that it is the same directory
  Duration give_up_after = std::chrono::seconds(30);  // since the connection was lost
};

// Belongs to the loop's thread. Reads at the connection's pace.
class OutputUploader {
 public:
  // `on_end` is called once, from the loop, and may destroy the uploader. OK: all is stored, and
  // the directory was removed unless it is the coordinator's own. Else what is lost and why; the
  // directory stays. Entries that cannot be sent (devices, links that leave the directory) are
  // lost, the others are stored.
  static std::unique_ptr<OutputUploader> Start(net::Loop* loop, OutputUploaderOptions options,
                                               std::function<void(const Status&)> on_end);
  virtual ~OutputUploader() = default;
};

}  // namespace shoal::rendezvous
