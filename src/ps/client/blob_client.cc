#include "ps/client/blob_client.h"

#include <fmt/format.h>

#include <deque>

#include "base/bytes.h"
#include "base/id.h"
#include "ps/storage/blob_store.h"

namespace shoal::ps {
namespace {

constexpr size_t kPiecesUnderWay = 4;
constexpr int kAttempts = 8;  // a server that restarts forgets half an upload

}  // namespace

Status BlobClient::Put(std::string_view name, std::string_view bytes, TimePoint deadline) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return InvalidArgument(
        fmt::format("blob name: got {} bytes, expected 1 to {}", name.size(), kMaxNameBytes));
  }
  Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    status = PutOnce(name, bytes, deadline);
    if (status.code() != Code::kAborted) break;
  }
  return status.With(fmt::format("blob '{}'", name));
}

Status BlobClient::PutOnce(std::string_view name, std::string_view bytes, TimePoint deadline) {
  const uint64_t upload = RandomSeed();
  std::deque<std::shared_ptr<Call>> under_way;
  Status status;
  const auto finish = [&] {
    const auto reply = leader_->FinishCall(under_way.front(), deadline);
    under_way.pop_front();
    if (status.ok()) status = reply.status();
  };
  size_t offset = 0;
  do {
    const std::string_view piece = bytes.substr(offset, kBlobPiece);
    std::string body;
    ByteWriter writer(&body);
    writer.PutString(name);
    writer.Put(upload);
    writer.Put(uint64_t{bytes.size()});
    writer.Put(uint64_t{offset});
    writer.PutString(piece);
    FrameHeader head;
    head.type = FrameType::kPutBlob;
    under_way.push_back(leader_->StartCall(head, std::move(body), false));
    offset += piece.size();
    if (under_way.size() >= kPiecesUnderWay) finish();
  } while (offset < bytes.size() && status.ok());
  while (!under_way.empty()) finish();
  return status;
}

Result<std::string> BlobClient::Get(std::string_view name, TimePoint deadline) {
  for (int attempt = 0;; ++attempt) {
    auto blob = GetOnce(name, deadline);
    if (blob.ok() || blob.status().code() != Code::kAborted || attempt >= kAttempts) return blob;
  }
}

Result<std::string> BlobClient::GetOnce(std::string_view name, TimePoint deadline) {
  const auto ask = [&](uint64_t offset) {
    std::string body;
    ByteWriter writer(&body);
    writer.PutString(name);
    writer.Put(offset);
    FrameHeader head;
    head.type = FrameType::kGetBlob;
    return leader_->StartCall(head, std::move(body), false);
  };
  std::deque<std::shared_ptr<Call>> under_way = {ask(0)};
  std::string content;
  uint64_t asked = kBlobPiece, first_version = 0;
  Status status;
  for (bool first = true; !under_way.empty(); first = false) {
    auto reply = leader_->FinishCall(under_way.front(), deadline);
    under_way.pop_front();
    if (status.ok()) status = reply.status();
    if (!status.ok()) continue;  // the others are still to be collected
    uint64_t version = 0, total = 0;
    std::string_view bytes;
    ByteReader reader(*reply);
    status = reader.Get(&version);
    if (status.ok()) status = reader.Get(&total);
    if (status.ok()) status = reader.GetString(&bytes, kBlobPiece);
    if (first) first_version = version;
    if (status.ok() && version != first_version)
      status = Aborted("the blob was replaced meanwhile");
    if (status.ok() && bytes.empty() && content.size() < total) {
      status = DataLoss("a server answered with an empty piece");
    }
    if (!status.ok()) continue;
    if (first) content.reserve(std::min<uint64_t>(total, uint64_t{1} << 30));
    content.append(bytes);
    for (; asked < total && under_way.size() < kPiecesUnderWay; asked += kBlobPiece) {
      under_way.push_back(ask(asked));
    }
  }
  if (!status.ok()) return status.With(fmt::format("blob '{}'", name));
  return content;
}

}  // namespace shoal::ps
