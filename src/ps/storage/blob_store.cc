#include "ps/storage/blob_store.h"

#include <fmt/format.h>

namespace shoal::ps {

Status BlobStore::Begin(const Piece& piece) {
  if (piece.total > max_blob_) {
    return ResourceExhausted(fmt::format("blob '{}' has {} bytes, the server takes at most {}",
                                         piece.name, piece.total, max_blob_));
  }
  if (piece.total > max_all_ - used_) {
    return ResourceExhausted(
        fmt::format("blob '{}' of {} bytes: the server holds {} of at most {} bytes of blobs",
                    piece.name, piece.total, used_, max_all_));
  }
  Upload upload{std::string(piece.name), {}, piece.total};
  upload.bytes.reserve(piece.total);
  uploads_.emplace(piece.upload, std::move(upload));
  used_ += piece.total;
  return Status::Ok();
}

Status BlobStore::Put(const Piece& piece) {
  auto found = uploads_.find(piece.upload);
  if (found == uploads_.end()) {
    const auto blob = blobs_.find(piece.name);
    if (blob != blobs_.end() && blob->second.upload == piece.upload) return Status::Ok();
    if (piece.offset != 0) {
      return Aborted(fmt::format("blob '{}': its upload is not known here", piece.name));
    }
    TRY(Begin(piece));
    found = uploads_.find(piece.upload);
  }
  Upload& upload = found->second;
  if (upload.name != piece.name || upload.total != piece.total ||
      piece.offset > upload.bytes.size() || piece.bytes.size() > upload.total - piece.offset) {
    return InvalidArgument(fmt::format("blob '{}': a piece at {} does not continue its upload",
                                       piece.name, piece.offset));
  }
  if (piece.offset == upload.bytes.size()) upload.bytes.append(piece.bytes);
  if (upload.bytes.size() < upload.total) return Status::Ok();

  Blob& blob = blobs_[upload.name];
  if (blob.content != nullptr) used_ -= blob.content->size();
  blob = {std::make_shared<const std::string>(std::move(upload.bytes)), piece.upload};
  uploads_.erase(found);
  owners_.erase(piece.upload);
  return Status::Ok();
}

void BlobStore::ForgetUploadsOf(uint64_t session) {
  for (auto at = owners_.begin(); at != owners_.end();) {
    if (at->second != session) {
      ++at;
      continue;
    }
    if (const auto upload = uploads_.find(at->first); upload != uploads_.end()) {
      used_ -= upload->second.total;
      uploads_.erase(upload);
    }
    at = owners_.erase(at);
  }
}

BlobStore::Content BlobStore::Get(std::string_view name, uint64_t* version) const {
  const auto found = blobs_.find(name);
  if (found == blobs_.end()) return nullptr;
  *version = found->second.upload;
  return found->second.content;
}

std::vector<std::string> BlobStore::List(std::string_view prefix) const {
  std::vector<std::string> names;
  for (auto at = blobs_.lower_bound(prefix); at != blobs_.end() && at->first.starts_with(prefix);
       ++at) {
    names.push_back(at->first);
  }
  return names;
}

void BlobStore::Delete(std::string_view name) {
  const auto found = blobs_.find(name);
  if (found == blobs_.end()) return;
  used_ -= found->second.content->size();
  blobs_.erase(found);
}

void BlobStore::Set(std::string_view name, std::string content) {
  Delete(name);
  used_ += content.size();
  blobs_[std::string(name)] = {std::make_shared<const std::string>(std::move(content)), 0};
}

std::map<std::string, BlobStore::Content> BlobStore::All() const {
  std::map<std::string, Content> all;
  for (const auto& [name, blob] : blobs_) all.emplace(name, blob.content);
  return all;
}

void BlobStore::ForEachPiece(const Visit& visit) const {
  const auto cut = [&](Piece piece, std::string_view all, uint64_t session) {
    do {
      piece.bytes = all.substr(piece.offset, kBlobPiece);
      visit(piece, session);
      piece.offset += piece.bytes.size();
    } while (piece.offset < all.size());
  };
  for (const auto& [name, blob] : blobs_) {
    cut({name, blob.upload, blob.content->size(), 0, {}}, *blob.content, 0);
  }
  for (const auto& [upload, begun] : uploads_) {
    const auto owner = owners_.find(upload);
    cut({begun.name, upload, begun.total, 0, {}}, begun.bytes,
        owner == owners_.end() ? 0 : owner->second);
  }
}

}  // namespace shoal::ps
