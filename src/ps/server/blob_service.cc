#include "ps/server/blob_service.h"

#include <fmt/format.h>

#include "base/bytes.h"

namespace shoal::ps {
namespace {

Status ReadPiece(std::string_view bytes, BlobStore::Piece* piece) {
  ByteReader reader(bytes);
  TRY(reader.GetString(&piece->name, kMaxNameBytes));
  TRY(reader.Get(&piece->upload));
  TRY(reader.Get(&piece->total));
  TRY(reader.Get(&piece->offset));
  return reader.GetString(&piece->bytes, kBlobPiece);
}

}  // namespace

Status BlobService::Handle(ControlRequest* request) {
  switch (request->head.type) {
    case FrameType::kPutBlob:
      return Put(request);
    case FrameType::kGetBlob:
      return Get(request);
    case FrameType::kListBlobs:
      return List(request);
    default:
      store_.Delete(request->body);
      request->answer(Status::Ok(), {});
      return Status::Ok();
  }
}

Status BlobService::List(ControlRequest* request) {
  std::string names;
  ByteWriter writer(&names);
  for (const std::string& name : store_.List(request->body)) writer.PutString(name);
  if (names.size() > kMaxPayload) return ResourceExhausted("too many blobs to list: narrow it");
  request->answer(Status::Ok(), names);
  return Status::Ok();
}

Status BlobService::Put(ControlRequest* request) {
  BlobStore::Piece piece;
  TRY(ReadPiece(request->body, &piece));
  if (piece.name.empty()) return InvalidArgument("a blob needs a name");
  store_.OwnUpload(piece.upload, request->from.session);
  TRY(store_.Put(piece));
  request->answer(Status::Ok(), {});
  return Status::Ok();
}

Status BlobService::Get(ControlRequest* request) {
  std::string_view name;
  uint64_t offset = 0, version = 0;
  ByteReader reader(request->body);
  TRY(reader.GetString(&name, kMaxNameBytes));
  TRY(reader.Get(&offset));
  const BlobStore::Content content = store_.Get(name, &version);
  if (content == nullptr) return NotFound(fmt::format("there is no blob '{}'", name));
  if (offset > content->size())
    return OutOfRange(fmt::format("blob '{}' ends before {}", name, offset));
  std::string reply;
  ByteWriter writer(&reply);
  writer.Put(version);
  writer.Put(uint64_t{content->size()});
  writer.PutString(std::string_view(*content).substr(offset, kBlobPiece));
  request->answer(Status::Ok(), reply);
  return Status::Ok();
}

void BlobService::LogAll(Lane* lane) const {
  store_.ForEachPiece([lane](const BlobStore::Piece& piece, uint64_t session) {
    std::string entry = BeginEntry(EntryKind::kBlob, -1, session);
    ByteWriter writer(&entry);
    writer.PutString(piece.name);
    writer.Put(piece.upload);
    writer.Put(piece.total);
    writer.Put(piece.offset);
    writer.PutString(piece.bytes);
    lane->Log(std::move(entry));
  });
}

Status BlobService::ApplyEntry(const Entry& entry) {
  BlobStore::Piece piece;
  TRY(ReadPiece(entry.content, &piece));
  if (entry.session != 0) store_.OwnUpload(piece.upload, entry.session);
  return store_.Put(piece);
}

}  // namespace shoal::ps
