#include "rendezvous/transfer/file_server.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "job/execution/job_dir.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

constexpr size_t kHighWater = 1 << 20;

}  // namespace

void FileServer::Add(Connection* connection) {
  readers_[connection];
  connection->OnDrain([this, connection] { Pump(connection); });
}

void FileServer::Remove(Connection* connection) { readers_.erase(connection); }

void FileServer::Release() {
  held_ = false;
  for (const auto& [connection, reader] : readers_) Pump(connection);
}

Status FileServer::Received(Connection* connection, const std::string& type,
                            const json::object& message) {
  const auto reader = readers_.find(connection);
  if (reader == readers_.end() || type == "heartbeat") return Status::Ok();
  std::filesystem::path path = job::StagedFilesDir(directory_).manifest();
  if (type == "get_blob") {
    TRY_ASSIGN(const std::string sha256, GetString(message, "sha256"));
    if (!IsHex64(sha256))
      return InvalidArgument("field 'sha256': expected 64 lower-case hex digits");
    path = job::StagedFilesDir(directory_).blobs() / sha256;
  } else if (type != "get_manifest") {
    return InvalidArgument("this type of message is unknown");
  }
  if (reader->second.waiting.size() >= kMaxFileRequests)
    return ResourceExhausted("too many requests at once");
  reader->second.waiting.push_back(std::move(path));
  Pump(connection);
  return Status::Ok();
}

bool FileServer::Open(Connection* connection, Reader* reader) {
  const std::filesystem::path& path = reader->waiting.front();
  auto file = OpenFile(path, O_RDONLY | O_NOFOLLOW);
  struct stat info {};
  if (file.ok() && ::fstat(file->get(), &info) == 0 && S_ISREG(info.st_mode)) {
    reader->file = std::move(*file);
    reader->left = info.st_size;
    connection->Send("content", {{"size", reader->left}});
    return true;
  }
  LogWarning("a host asked for {}, which is not there", path.string());
  connection->Send("missing", {{"text", "the coordinator has no " + path.filename().string()}});
  reader->waiting.pop_front();
  return false;
}

void FileServer::Pump(Connection* connection) {
  const auto found = readers_.find(connection);
  if (found == readers_.end() || held_) return;
  Reader& reader = found->second;
  while (!reader.waiting.empty() && connection->queued_bytes() < kHighWater) {
    if (!reader.file.valid() && !Open(connection, &reader)) continue;
    if (reader.left == 0) {
      reader.file.Reset();
      reader.waiting.pop_front();
      continue;
    }
    std::string frame(static_cast<size_t>(std::min<int64_t>(reader.left, kFileFrame)), '\0');
    const ssize_t got = ::read(reader.file.get(), frame.data(), frame.size());
    if (got <= 0) {
      connection->Close("a file that is being sent cannot be read");
      reader.waiting.clear();
      return;
    }
    frame.resize(static_cast<size_t>(got));
    reader.left -= got;
    connection->SendBinary(std::move(frame));
  }
}

}  // namespace shoal::rendezvous
