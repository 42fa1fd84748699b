// Uploads to S3: one request for a short object, else a multipart upload, which is aborted if it is
// not finished. An object appears with the last request.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "data/objects/s3/s3_client.h"

namespace shoal::data {
namespace {

constexpr size_t kMaxParts = 10'000;

class S3Writer final : public ObjectWriter {
 public:
  S3Writer(std::shared_ptr<const S3Client> client, ObjectUri uri, S3Upload upload)
      : client_(std::move(client)), uri_(std::move(uri)), upload_(upload) {}

  ~S3Writer() override {
    if (upload_id_.empty()) return;
    S3Request request;
    request.method = "DELETE";
    request.query = "uploadId=" + net::PercentEncode(upload_id_);
    const auto reply = client_->Send(uri_, request);
    if (!reply.ok() || reply->status / 100 != 2) {
      LogWarning("the unfinished upload {} of {} could not be aborted and may cost money: {}",
                 upload_id_, uri_.text(),
                 reply.ok() ? fmt::format("status {}", reply->status) : reply.status().message());
    }
  }

  Status Append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const size_t room = PartSize() - buffer_.size();
      buffer_ += bytes.substr(0, room);
      bytes.remove_prefix(std::min(room, bytes.size()));
      if (buffer_.size() < PartSize()) continue;
      if (upload_id_.empty()) TRY(Begin());
      TRY(SendPart());
    }
    return Status::Ok();
  }

  Result<ObjectInfo> Finish() override {
    if (upload_id_.empty()) return SendWhole();
    if (!buffer_.empty()) TRY(SendPart());
    return Complete();
  }

 private:
  size_t PartSize() const {
    return upload_.first_part << (tags_.size() / std::max<uint64_t>(1, upload_.parts_of_one_size));
  }

  Result<ObjectInfo> SendWhole() {
    S3Request request;
    request.method = "PUT";
    request.body = std::move(buffer_);
    const uint64_t bytes = request.body.size();
    TRY_ASSIGN(const net::HttpReply reply, client_->Send(uri_, request));
    if (reply.status != kHttpOk) return client_->ErrorOf(uri_, reply);
    return ObjectInfo{uri_.text(), bytes, reply.Header("etag"), ""};
  }

  Status Begin() {
    S3Request request;
    request.method = "POST";
    request.query = "uploads=";
    TRY_ASSIGN(const net::HttpReply reply, client_->Send(uri_, request));
    if (reply.status != kHttpOk) return client_->ErrorOf(uri_, reply);
    TRY_ASSIGN(const XmlElement answer, ParseXml(reply.body));
    upload_id_ = answer.TextOf("UploadId");
    if (upload_id_.empty()) return DataLoss(uri_.text() + ": the store gives no upload's name");
    return Status::Ok();
  }

  // A part that was sent twice replaces itself.
  Status SendPart() {
    if (tags_.size() == kMaxParts)
      return ResourceExhausted(uri_.text() + ": it has more parts than S3 takes");
    S3Request request;
    request.method = "PUT";
    request.query =
        fmt::format("partNumber={}&uploadId={}", tags_.size() + 1, net::PercentEncode(upload_id_));
    request.body = std::exchange(buffer_, {});
    bytes_ += request.body.size();
    TRY_ASSIGN(const net::HttpReply reply, client_->Send(uri_, request));
    if (reply.status != kHttpOk) return client_->ErrorOf(uri_, reply);
    std::string tag = reply.Header("etag");
    if (tag.empty() || tag.find_first_of("<>&") != std::string::npos)
      return DataLoss(uri_.text() + ": the store gives no ETag of a part");
    tags_.push_back(std::move(tag));
    return Status::Ok();
  }

  // Its reply may be an error with the status 200, since it may take minutes.
  Result<ObjectInfo> Complete() {
    S3Request request;
    request.method = "POST";
    request.query = "uploadId=" + net::PercentEncode(upload_id_);
    request.body = "<CompleteMultipartUpload>";
    for (size_t i = 0; i < tags_.size(); ++i) {
      request.body +=
          fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, tags_[i]);
    }
    request.body += "</CompleteMultipartUpload>";
    TRY_ASSIGN(const net::HttpReply reply, client_->Send(uri_, request));
    if (reply.status != kHttpOk) return client_->ErrorOf(uri_, reply);
    const auto answer = ParseXml(reply.body);
    if (!answer.ok()) return answer.status().With(uri_.text());
    if (answer->name != "CompleteMultipartUploadResult") return client_->ErrorOf(uri_, reply);
    upload_id_.clear();
    return ObjectInfo{uri_.text(), bytes_, answer->TextOf("ETag"), ""};
  }

  const std::shared_ptr<const S3Client> client_;
  const ObjectUri uri_;
  const S3Upload upload_;
  std::string buffer_;
  std::string upload_id_;          // empty: no multipart upload
  std::vector<std::string> tags_;  // of the parts sent
  uint64_t bytes_ = 0;             // in parts sent
};

}  // namespace

std::unique_ptr<ObjectWriter> MakeS3Writer(std::shared_ptr<const S3Client> client, ObjectUri uri,
                                           S3Upload upload) {
  return std::make_unique<S3Writer>(std::move(client), std::move(uri), upload);
}

}  // namespace shoal::data
