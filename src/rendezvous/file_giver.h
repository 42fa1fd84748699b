// The controller's side of bringing a job's files to a coordinator that does not see its directory
// (file_intake.h): answers what the coordinator asks for, over a line of its own, for as long as it
// lives.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "net/loop.h"
#include "rendezvous/link.h"

namespace shoal::rendezvous {

struct GiveFilesOptions {
  std::function<Result<CoordinatorAddress>()> find;  // asked before every dial
  std::string token;
  std::filesystem::path directory;                    // JOBDIR/files
  Duration give_up_after = std::chrono::seconds(30);  // since the line was lost
};

// Belongs to the loop's thread.
class FileGiver {
 public:
  static std::unique_ptr<FileGiver> Start(net::Loop* loop, GiveFilesOptions options);
  virtual ~FileGiver() = default;
};

}  // namespace shoal::rendezvous
