// The coordinator's side of staging a job's directory: sends the manifest and file contents to
// hosts that lack them, over connections with hello kind "files".
//
// Reads JOBDIR/files, which the controller filled: manifest.json and blobs/<sha256>. Used by
// transfers.cc. docs/formats/files.md has the messages.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "rendezvous/protocol/connection.h"

namespace shoal::rendezvous {

// A connection with more waiting requests is closed.
inline constexpr size_t kMaxFileRequests = 64;
inline constexpr size_t kFileFrame = 256 << 10;

// Belongs to the loop's thread. Reads at the connection's pace and holds at most 1 MiB for each.
class FileServer {
 public:
  explicit FileServer(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // The caller keeps ownership of `connection`, until Remove.
  void Add(Connection* connection);
  bool Serves(Connection* connection) const { return readers_.contains(connection); }
  void Remove(Connection* connection);
  // Answers nothing until Release, while the files are still being received.
  void Hold() { held_ = true; }
  void Release();
  // InvalidArgument for an unknown or malformed request; the caller then closes the connection.
  Status Received(Connection* connection, const std::string& type, const json::object& message);

 private:
  struct Reader {
    std::deque<std::filesystem::path> waiting;
    UniqueFd file;  // of the first one
    int64_t left = 0;
  };
  void Pump(Connection* connection);
  // False if it cannot be read; the other side was told.
  bool Open(Connection* connection, Reader* reader);

  const std::filesystem::path directory_;
  std::map<Connection*, Reader> readers_;
  bool held_ = false;
};

}  // namespace shoal::rendezvous
