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
#include "host/blob_cache.h"
#include "rendezvous/fetch_queue.h"
#include "rendezvous/peer.h"

namespace shoal::rendezvous {

// Belongs to the loop's thread.
class FileIntake {
 public:
  // `directory`: FileServer's. `on_whole` is called once, when all is there.
  FileIntake(std::filesystem::path directory, std::function<void()> on_whole)
      : directory_(std::move(directory)), on_whole_(std::move(on_whole)) {}

  bool whole() const;
  // Who has the files, instead of an earlier one. `peer` stays the caller's, until Remove. What has
  // come from an earlier one is not asked for again.
  void Add(Peer* peer);
  bool Serves(const Peer* peer) const { return peer_ != nullptr && peer_ == peer; }
  void Remove(Peer* peer);
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
  Peer* peer_ = nullptr;
  std::string manifest_;
  std::vector<host::Blob> blobs_;  // that are asked for
  std::optional<host::BlobCache> cache_;
  std::optional<host::BlobCache::Writer> writer_;
  std::optional<FetchQueue> queue_;
  bool listed_ = false;  // the manifest has come: the queue is of blobs
};

}  // namespace shoal::rendezvous
