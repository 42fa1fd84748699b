// Named byte strings on one server: put in pieces, seen whole or not at all, read in pieces.
//
// Under the lock of the server's first lane. Contents are immutable once committed, so that a
// checkpoint's writer keeps them by reference.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::ps {

inline constexpr size_t kBlobPiece = 1u << 20;

class BlobStore {
 public:
  using Content = std::shared_ptr<const std::string>;

  BlobStore(uint64_t max_blob, uint64_t max_all) : max_blob_(max_blob), max_all_(max_all) {}

  struct Piece {
    std::string_view name;
    uint64_t upload = 0;  // chosen by the client, unique among all uploads
    uint64_t total = 0;
    uint64_t offset = 0;
    std::string_view bytes;
  };
  // Takes the next piece of an upload; the last one makes it visible. A piece that came before is
  // taken as done. Aborted: the upload is unknown here (the server came back): start over.
  // ResourceExhausted names the bound.
  Status Put(const Piece& piece);
  // Drops what a client had begun and will not finish.
  void ForgetUploadsOf(uint64_t session);
  // Uploads are counted to this session until committed.
  void OwnUpload(uint64_t upload, uint64_t session) { owners_[upload] = session; }

  // Null if there is none.
  Content Get(std::string_view name, uint64_t* version) const;
  std::vector<std::string> List(std::string_view prefix) const;
  void Delete(std::string_view name);
  // For restore.
  void Set(std::string_view name, std::string content);
  std::map<std::string, Content> All() const;
  size_t count() const { return blobs_.size(); }
  // Of all blobs and of uploads under way.
  uint64_t bytes() const { return used_; }
  // For a copy: every blob, and what has come of every upload, in pieces.
  // Taking them with Put, and OwnUpload before, makes the same store.
  using Visit = std::function<void(const Piece& piece, uint64_t session)>;
  void ForEachPiece(const Visit& visit) const;

 private:
  struct Blob {
    Content content;
    uint64_t upload = 0;
  };
  struct Upload {
    std::string name;
    std::string bytes;
    uint64_t total = 0;
  };
  Status Begin(const Piece& piece);

  const uint64_t max_blob_;
  const uint64_t max_all_;
  uint64_t used_ = 0;  // committed and promised bytes
  std::map<std::string, Blob, std::less<>> blobs_;
  std::map<uint64_t, Upload> uploads_;
  std::map<uint64_t, uint64_t> owners_;  // upload → session
};

}  // namespace shoal::ps
