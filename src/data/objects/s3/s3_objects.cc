#include "data/objects/s3/s3_objects.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "data/objects/http_objects.h"
#include "data/objects/s3/s3_client.h"

namespace shoal::data {
namespace {

constexpr size_t kMaxListing = 8 << 20;  // of one page of 1000 keys of up to 1024 bytes, encoded

Result<uint64_t> NumberOf(const std::string& text, const char* field) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec == std::errc() && parsed.ptr == end && !text.empty() && value < (uint64_t{1} << 62))
    return value;
  return DataLoss(fmt::format("the store's answer has the {} '{}', expected a number", field,
                              text.substr(0, 40)));
}

// "%41+b" → "A b": keys in listings with encoding-type=url.
std::string DecodeKey(std::string_view text) {
  std::string key;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, code, 16).ptr ==
            text.data() + i + 3) {
      key += static_cast<char>(code);
      i += 2;
    } else {
      key += text[i] == '+' ? ' ' : text[i];
    }
  }
  return key;
}

class S3Object final : public Object {
 public:
  S3Object(std::shared_ptr<const S3Client> client, const ObjectUri& uri)
      : client_(std::move(client)), uri_(uri) {
    info_.uri = uri.text();
  }
  const ObjectInfo& info() const override { return info_; }

  // By the first byte and not by HEAD, whose errors have no text.
  Status Inspect() {
    S3Request request;
    request.headers = {{"Range", "bytes=0-0"}};
    TRY_ASSIGN(const net::HttpReply reply, client_->Send(uri_, request));
    if (reply.status == kHttpPartial) {
      const auto length = LengthOfContentRange(reply.Header("content-range"));
      if (!length.ok()) return length.status().With(info_.uri);
      info_.bytes = *length;
      info_.version = reply.Header("etag");
      info_.modified = reply.Header("last-modified");
      return Status::Ok();
    }
    if (reply.status == kHttpNoSuchRange || (reply.status == kHttpOk && reply.body.empty()))
      return InspectEmpty();
    return client_->ErrorOf(uri_, reply);
  }

  Result<size_t> ReadAt(uint64_t offset, char* to, size_t size) const override {
    size =
        static_cast<size_t>(std::min<uint64_t>(size, info_.bytes - std::min(offset, info_.bytes)));
    if (size == 0) return size_t{0};
    S3Request request;
    request.headers = {{"Range", fmt::format("bytes={}-{}", offset, offset + size - 1)}};
    if (!info_.version.empty()) request.headers.emplace_back("If-Match", info_.version);
    request.max_body = size;
    TRY_ASSIGN(const net::HttpReply reply, client_->Send(uri_, request));
    if (reply.status == kHttpPreconditionFailed || reply.status == kHttpNoSuchRange ||
        (reply.status == kHttpPartial && reply.Header("etag") != info_.version))
      return Changed(reply.Header("etag"));
    if (reply.status == kHttpNotFound) {
      return DataLoss(fmt::format(
          "{} was there when it was opened, and is not any more; put it back and start again",
          info_.uri));
    }
    if (reply.status != kHttpPartial) return client_->ErrorOf(uri_, reply);
    if (reply.body.size() != size) return Changed("of another length");
    std::memcpy(to, reply.body.data(), size);
    return size;
  }

 private:
  // An empty object has no first byte.
  Status InspectEmpty() {
    TRY_ASSIGN(const net::HttpReply reply, client_->Send(uri_, S3Request()));
    if (reply.status != kHttpOk) return client_->ErrorOf(uri_, reply);
    if (!reply.body.empty()) return Changed(reply.Header("etag"));
    info_.version = reply.Header("etag");
    info_.modified = reply.Header("last-modified");
    return Status::Ok();
  }

  Status Changed(const std::string& version) const {
    return DataLoss(fmt::format(
        "{} has changed since it was opened (ETag {}{}); do not change data while it is used",
        info_.uri, info_.version, version.empty() ? "" : ", now " + version));
  }

  const std::shared_ptr<const S3Client> client_;
  const ObjectUri uri_;
  ObjectInfo info_;
};

class S3Store final : public ObjectStore {
 public:
  S3Store(std::shared_ptr<const S3Client> client, S3Upload upload)
      : client_(std::move(client)), upload_(upload) {}

  Result<std::shared_ptr<const Object>> Open(const ObjectUri& uri) override {
    TRY(CheckKey(uri));
    auto object = std::make_shared<S3Object>(client_, uri);
    TRY(object->Inspect());
    return std::shared_ptr<const Object>(std::move(object));
  }

  Status List(const ObjectUri& prefix, const VisitObject& visit) override {
    const ObjectUri bucket = prefix.WithPath("");
    std::string continuation;
    for (;;) {
      S3Request request;
      if (!continuation.empty())
        request.query = "continuation-token=" + net::PercentEncode(continuation) + "&";
      request.query +=
          "encoding-type=url&list-type=2&max-keys=1000&prefix=" + net::PercentEncode(prefix.path);
      request.max_body = kMaxListing;
      TRY_ASSIGN(const net::HttpReply reply, client_->Send(bucket, request));
      if (reply.status != kHttpOk) return client_->ErrorOf(bucket, reply);
      const auto page = ParseXml(reply.body);
      if (!page.ok()) return page.status().With(prefix.text());
      TRY(VisitPage(bucket, *page, visit));
      if (page->TextOf("IsTruncated") != "true") return Status::Ok();
      std::string next = page->TextOf("NextContinuationToken");
      if (next.empty() || next == continuation)
        return DataLoss(prefix.text() + ": the store's listing does not go on");
      continuation = std::move(next);
    }
  }

  Result<std::unique_ptr<ObjectWriter>> Create(const ObjectUri& uri) override {
    TRY(CheckKey(uri));
    return MakeS3Writer(client_, uri, upload_);
  }

  // "If-None-Match: *". Stores that do not know it would replace an object, so one that is there is
  // found before, and what is there afterwards is compared.
  Status CreateNew(const ObjectUri& uri, std::string_view bytes) override {
    TRY(CheckKey(uri));
    TRY_ASSIGN(const std::optional<std::string> before, Read(uri));
    if (before) return OwnOrOther(uri, *before, bytes);
    S3Request request;
    request.method = "PUT";
    request.headers = {{"If-None-Match", "*"}};
    request.body = bytes;
    TRY_ASSIGN(const net::HttpReply reply, client_->Send(uri, request));
    constexpr int kConflict = 409;
    if (reply.status != kHttpOk && reply.status != kHttpPreconditionFailed &&
        reply.status != kConflict)
      return client_->ErrorOf(uri, reply);
    TRY_ASSIGN(const std::optional<std::string> after, Read(uri));
    if (!after) return Unavailable(uri.text() + ": another process makes or removes it now");
    return OwnOrOther(uri, *after, bytes);
  }

  Status Remove(const ObjectUri& uri) override {
    TRY(CheckKey(uri));
    S3Request request;
    request.method = "DELETE";
    TRY_ASSIGN(const net::HttpReply reply, client_->Send(uri, request));
    const bool gone = reply.status / 100 == 2 || reply.status == kHttpNotFound;
    return gone ? Status::Ok() : client_->ErrorOf(uri, reply);
  }

 private:
  static Status CheckKey(const ObjectUri& uri) {
    if (!uri.path.empty() && !uri.path.ends_with('/')) return Status::Ok();
    return InvalidArgument(uri.text() + ": expected an object, got a bucket or a folder");
  }

  // A short object; none if there is none.
  Result<std::optional<std::string>> Read(const ObjectUri& uri) const {
    S3Request request;
    request.max_body = kMaxNewObject;
    TRY_ASSIGN(net::HttpReply reply, client_->Send(uri, request));
    if (reply.status == kHttpNotFound) return std::optional<std::string>();
    if (reply.status != kHttpOk) return client_->ErrorOf(uri, reply);
    return std::optional(std::move(reply.body));
  }

  static Status OwnOrOther(const ObjectUri& uri, std::string_view there, std::string_view own) {
    return there == own ? Status::Ok() : AlreadyExists(uri.text() + " exists");
  }

  static Status VisitPage(const ObjectUri& bucket, const XmlElement& page,
                          const VisitObject& visit) {
    const bool encoded = page.TextOf("EncodingType") == "url";
    for (const XmlElement& one : page.children) {
      if (one.name != "Contents") continue;
      const std::string key = one.TextOf("Key");
      TRY_ASSIGN(const uint64_t bytes, NumberOf(one.TextOf("Size"), "Size"));
      TRY(visit({bucket.WithPath(encoded ? DecodeKey(key) : key).text(), bytes, one.TextOf("ETag"),
                 one.TextOf("LastModified")}));
    }
    return Status::Ok();
  }

  const std::shared_ptr<const S3Client> client_;
  const S3Upload upload_;
};

}  // namespace

std::unique_ptr<ObjectStore> MakeS3Store(S3Settings settings,
                                         std::shared_ptr<HttpTransport> transport,
                                         S3Upload upload) {
  return std::make_unique<S3Store>(
      std::make_shared<const S3Client>(std::move(settings), std::move(transport)), upload);
}

}  // namespace shoal::data
