// The controller's side of bringing a job's files to a coordinator that does not see its directory
// (file_intake.h): answers what the coordinator asks for, over a line of its own, for as long as it
// lives.
#pragma once

#include <memory>

#include "net/loop.h"
#include "rendezvous/own_line.h"

namespace shoal::rendezvous {

// Belongs to the loop's thread.
class FileGiver {
 public:
  static std::unique_ptr<FileGiver> Start(net::Loop* loop, const OwnLine& line);
  virtual ~FileGiver() = default;
};

}  // namespace shoal::rendezvous
