// The coordinator's side of shipping a job's directory: sends the list of its files and their
// contents to hosts that have not got them, over a connection of its own that proved the job's
// token (hello kind "files").
//
// Reads JOBDIR/files, which the controller filled: manifest.json, and blobs/<sha256>. Used by
// coordinator.cc. docs/formats/files.md has the messages.
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

// Requests of one connection that may wait; more closes it.
inline constexpr size_t kMaxFileRequests = 64;
inline constexpr size_t kFileFrame = 256 << 10;

// Belongs to the loop's thread. Reads as fast as a connection takes it and holds at most 1 MiB for
// each.
class FileServer {
 public:
  explicit FileServer(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // `connection` stays the caller's, until Remove.
  void Add(Connection* connection);
  bool Serves(Connection* connection) const { return readers_.contains(connection); }
  void Remove(Connection* connection);
  // Until Release nothing is answered: the files are still coming.
  void Hold() { held_ = true; }
  void Release();
  // InvalidArgument for what is no request; the connection is then to be closed.
  Status Received(Connection* connection, const std::string& type, const json::object& message);

 private:
  struct Reader {
    std::deque<std::filesystem::path> waiting;
    UniqueFd file;  // of the first one
    int64_t left = 0;
  };
  void Pump(Connection* connection);
  // False if it cannot be read; the connection was told.
  bool Open(Connection* connection, Reader* reader);

  const std::filesystem::path directory_;
  std::map<Connection*, Reader> readers_;
  bool held_ = false;
};

}  // namespace shoal::rendezvous
