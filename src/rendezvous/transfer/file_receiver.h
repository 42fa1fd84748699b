// How a coordinator that does not see its controller's directory gets the job's files: over a
// connection that the controller has made (hello kind "give_files") it asks as hosts ask itself,
// and keeps what it gets where its FileServer looks. Used by coordinator.cc. docs/formats/files.md.
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
  // `directory`: FileServer's. `on_whole` is called once, when all is there.
  FileReceiver(std::filesystem::path directory, std::function<void()> on_whole)
      : directory_(std::move(directory)), on_whole_(std::move(on_whole)) {}

  bool whole() const;
  // Who has the files, instead of an earlier one. `connection` stays the caller's, until Remove.
  // What has come from an earlier one is not asked for again.
  void Add(Connection* connection);
  bool Serves(const Connection* connection) const {
    return connection_ != nullptr && connection_ == connection;
  }
  void Remove(Connection* connection);
  // Errors: the connection is then to be closed.
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
  std::vector<host::Blob> blobs_;  // that are asked for
  std::optional<host::BlobCache> cache_;
  std::optional<host::BlobCache::Writer> writer_;
  std::optional<FetchQueue> queue_;
  bool listed_ = false;  // the manifest has come: the queue is of blobs
};

}  // namespace shoal::rendezvous
