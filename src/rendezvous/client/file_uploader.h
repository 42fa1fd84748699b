// The controller's side of uploading a job's files in no-shared-filesystem mode (file_receiver.h):
// answers the coordinator's requests over a connection of its own, until destroyed.
#pragma once

#include <memory>

#include "net/event_loop.h"
#include "rendezvous/client/transfer_options.h"

namespace shoal::rendezvous {

// Belongs to the loop's thread.
class FileUploader {
 public:
  static std::unique_ptr<FileUploader> Start(net::Loop* loop, const TransferOptions& line);
  virtual ~FileUploader() = default;
};

}  // namespace shoal::rendezvous
