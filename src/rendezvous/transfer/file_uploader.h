// The controller's side of bringing a job's files to a coordinator that does not see its directory
// (file_intake.h): answers what the coordinator asks for, over a line of its own, for as long as it
// lives.
#pragma once

#include <memory>

#include "net/event_loop.h"
#include "rendezvous/transfer/transfer_options.h"

namespace shoal::rendezvous {

// Belongs to the loop's thread.
class FileUploader {
 public:
  static std::unique_ptr<FileUploader> Start(net::Loop* loop, const TransferOptions& line);
  virtual ~FileUploader() = default;
};

}  // namespace shoal::rendezvous
