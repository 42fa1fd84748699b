#include "rendezvous/transfer/file_receiver.h"

#include <set>
#include <utility>

#include "base/file.h"
#include "host/files/manifest.h"
#include "job/execution/job_dir.h"

namespace shoal::rendezvous {

bool FileReceiver::whole() const {
  std::error_code error;
  return std::filesystem::exists(job::StagedFilesDir(directory_).manifest(), error);
}

FetchQueue::Send FileReceiver::Sender() {
  return [this](const std::string& request, const json::object& fields) {
    if (connection_ != nullptr) connection_->Send(request, fields);
  };
}

void FileReceiver::Add(Connection* connection) {
  connection_ = connection;
  if (whole()) return;
  listed_ = false;
  manifest_.clear();
  FetchQueue::Sink sink;
  sink.on_begin = [](size_t) { return Status::Ok(); };
  sink.on_bytes = [this](size_t, std::string_view bytes) {
    manifest_.append(bytes);
    return Status::Ok();
  };
  sink.on_whole = [](size_t) { return Status::Ok(); };
  queue_.emplace(
      std::vector<FetchQueue::Target>{{"get_manifest", {}, host::kMaxManifestBytes, false}},
      std::move(sink), Sender());
  queue_->Begin();
}

void FileReceiver::Remove(Connection* connection) {
  if (!Serves(connection)) return;
  connection_ = nullptr;
  queue_.reset();
  writer_.reset();
}

Status FileReceiver::Received(const std::string& type, const json::object& message) {
  if (!queue_ || type == "heartbeat") return Status::Ok();
  return After(queue_->HandleMessage(type, message));
}

Status FileReceiver::Received(std::string_view bytes) {
  if (!queue_) return InvalidArgument("files that were not requested");
  return After(queue_->HandleBytes(bytes));
}

Status FileReceiver::After(const Status& status) {
  TRY(status);
  if (!queue_->done()) return Status::Ok();
  if (!std::exchange(listed_, true)) TRY(AskForBlobs());
  return queue_->done() ? Finish() : Status::Ok();
}

Status FileReceiver::AskForBlobs() {
  TRY_ASSIGN(const host::Manifest manifest, host::ParseManifest(manifest_));
  TRY(MakeDirectories(job::StagedFilesDir(directory_).blobs(), 0700));
  TRY_ASSIGN(host::BlobCache cache, host::BlobCache::Open(directory_ / "cache"));
  cache_.emplace(std::move(cache));
  blobs_.clear();
  std::set<std::string> named;
  std::vector<FetchQueue::Target> targets;
  std::error_code error;
  for (const host::ManifestEntry& entry : manifest.entries) {
    if (entry.kind != host::ManifestEntry::Kind::kFile || !named.insert(entry.sha256).second)
      continue;
    if (std::filesystem::exists(job::StagedFilesDir(directory_).blobs() / entry.sha256, error))
      continue;
    blobs_.push_back({entry.sha256, entry.size});
    targets.push_back({"get_blob", {{"sha256", entry.sha256}}, entry.size, true});
  }
  queue_.emplace(std::move(targets), BlobSink(), Sender());
  queue_->Begin();
  return Status::Ok();
}

FetchQueue::Sink FileReceiver::BlobSink() {
  FetchQueue::Sink sink;
  sink.on_begin = [this](size_t) -> Status {
    writer_.reset();
    TRY_ASSIGN(host::BlobCache::Writer begun, cache_->Begin());
    writer_.emplace(std::move(begun));
    return Status::Ok();
  };
  sink.on_bytes = [this](size_t, std::string_view bytes) { return writer_->Write(bytes); };
  sink.on_whole = [this](size_t number) -> Status {
    const host::Blob& blob = blobs_[number];
    TRY_ASSIGN(const host::Blob stored, cache_->Commit(std::move(*writer_), &blob));
    writer_.reset();
    return cache_->Pin(stored, job::StagedFilesDir(directory_).blobs() / blob.sha256);
  };
  return sink;
}

// The manifest is written last: where it exists, all files exist.
Status FileReceiver::Finish() {
  TRY(WriteFileAtomically(job::StagedFilesDir(directory_).manifest(), manifest_, 0600, false));
  cache_.reset();
  queue_.reset();
  on_whole_();
  return Status::Ok();
}

}  // namespace shoal::rendezvous
