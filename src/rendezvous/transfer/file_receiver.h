// The coordinator's side of uploading a job's files in no-shared-filesystem mode: requests them
// over a connection that the controller opened (hello kind "give_files") and stores them where its
// FileServer reads. Used by transfers.cc. docs/formats/files.md.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "host/files/blob_cache.h"
#include "rendezvous/protocol/connection.h"
#include "rendezvous/transfer/fetch_queue.h"

namespace shoal::rendezvous {

// Belongs to the loop's thread.
class FileReceiver {
 public:
  // `directory`: FileServer's. `on_whole` is called once, when all files are stored.
  FileReceiver(std::filesystem::path directory, std::function<void()> on_whole)
      : directory_(std::move(directory)), on_whole_(std::move(on_whole)) {}

  bool whole() const;
  // A controller that has the files; it replaces an earlier one. The caller keeps ownership of
  // `connection`, until Remove. Files received before are not requested again.
  void Add(Connection* connection);
  bool Serves(const Connection* connection) const {
    return connection_ != nullptr && connection_ == connection;
  }
  void Remove(Connection* connection);
  // On an error the caller closes the connection.
  Status Received(const std::string& type, const json::object& message);
  Status Received(std::string_view bytes);

 private:
  Status After(const Status& status);
  Status AskForBlobs();
  FetchQueue::Sink BlobSink();
  Status Finish();
  FetchQueue::Send Sender();

  const std::filesystem::path directory_;
  const std::function<void()> on_whole_;
  Connection* connection_ = nullptr;
  std::string manifest_;
  std::vector<host::Blob> blobs_;  // requested
  std::optional<host::BlobCache> cache_;
  std::optional<host::BlobCache::Writer> writer_;
  std::optional<FetchQueue> queue_;
  bool listed_ = false;  // the manifest was received: the queue holds blobs
};

}  // namespace shoal::rendezvous
