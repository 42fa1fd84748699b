#include "data/objects/http_objects.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <utility>

#include "data/objects/http_transport.h"

namespace shoal::data {
namespace {

constexpr int kRedirects = 5;

std::string HttpServerOf(const ObjectUri& uri) {
  return (uri.scheme == ObjectScheme::kHttps ? "https://" : "http://") + uri.authority;
}

// What tells two versions apart.
std::string VersionOfReply(const net::HttpReply& reply) {
  std::string tag = reply.Header("etag");
  return tag.empty() ? reply.Header("last-modified") : tag;
}

Status UnexpectedReply(const std::string& uri, const net::HttpReply& reply) {
  std::string remedy;
  if (reply.status == 401 || reply.status == 403)
    remedy = "; the server wants credentials, which are not sent to HTTP sources";
  return StatusOfHttp(reply.status,
                      fmt::format("{}: the server answers {}{}", uri, reply.status, remedy));
}

class HttpObject final : public Object {
 public:
  HttpObject(std::shared_ptr<HttpTransport> transport, const ObjectUri& uri)
      : transport_(std::move(transport)), uri_(uri) {
    info_.uri = uri.text();
  }

  const ObjectInfo& info() const override { return info_; }

  // Asks for the first byte: servers that refuse HEAD answer it, and say whether they know ranges.
  Status Inspect() {
    TRY_ASSIGN(net::HttpReply reply, Get(0, 1, kMaxWholeBody));
    if (reply.status == kHttpPartial || reply.status == kHttpNoSuchRange) {
      const auto length = LengthOfContentRange(reply.Header("content-range"));
      if (!length.ok()) return length.status().With(info_.uri);
      info_.bytes = *length;
    } else if (reply.status == kHttpOk) {
      info_.bytes = reply.body.size();
      whole_ = std::make_shared<const std::string>(std::move(reply.body));
    } else {
      return UnexpectedReply(info_.uri, reply);
    }
    info_.version = VersionOfReply(reply);
    info_.modified = reply.Header("last-modified");
    return Status::Ok();
  }

  Result<size_t> ReadAt(uint64_t offset, char* to, size_t size) const override {
    size =
        static_cast<size_t>(std::min<uint64_t>(size, info_.bytes - std::min(offset, info_.bytes)));
    if (size == 0) return size_t{0};
    if (whole_ != nullptr) {
      std::memcpy(to, whole_->data() + offset, size);
      return size;
    }
    TRY_ASSIGN(const net::HttpReply reply, Get(offset, size, size));
    TRY(CheckSame(reply));
    if (reply.status != kHttpPartial) return UnexpectedReply(info_.uri, reply);
    if (reply.body.size() != size)
      return DataLoss(fmt::format("{}: got {} bytes at {}, expected {}", info_.uri,
                                  reply.body.size(), offset, size));
    std::memcpy(to, reply.body.data(), size);
    return size;
  }

 private:
  Result<net::HttpReply> Get(uint64_t offset, size_t size, size_t max_body) const {
    TransportCall call;
    call.server = HttpServerOf(uri_);
    call.max_body = std::max<size_t>(max_body, 64 << 10);
    call.redirects = kRedirects;
    call.request = [&](WallTime) -> Result<net::HttpRequest> {
      net::HttpRequest request;
      request.target = uri_.path;
      request.headers = {{"Range", fmt::format("bytes={}-{}", offset, offset + size - 1)},
                         {"Accept-Encoding", "identity"},
                         {"User-Agent", "shoal"}};
      if (info_.version.starts_with('"')) request.headers.emplace_back("If-Match", info_.version);
      return request;
    };
    auto reply = transport_->Run(call);
    if (reply.ok()) return reply;
    if (reply.status().code() == Code::kResourceExhausted) {
      return FailedPrecondition(fmt::format(
          "{}: the server does not know ranges, and the file is longer than {} MiB; download it "
          "(curl -O), or copy it to a store that does",
          info_.uri, kMaxWholeBody >> 20));
    }
    return reply.status().With(info_.uri);
  }

  Status CheckSame(const net::HttpReply& reply) const {
    const std::string version = VersionOfReply(reply);
    bool changed = reply.status == kHttpPreconditionFailed || reply.status == kHttpNoSuchRange;
    if (reply.status == kHttpPartial) {
      const auto length = LengthOfContentRange(reply.Header("content-range"));
      if (!length.ok()) return length.status().With(info_.uri);
      changed = *length != info_.bytes || version != info_.version;
    }
    if (!changed) return Status::Ok();
    return DataLoss(fmt::format(
        "{} has changed since it was opened (version {}, now {}); do not change data while it is "
        "used",
        info_.uri, info_.version.empty() ? "unknown" : info_.version,
        version.empty() ? "unknown" : version));
  }

  const std::shared_ptr<HttpTransport> transport_;
  const ObjectUri uri_;
  ObjectInfo info_;
  std::shared_ptr<const std::string> whole_;  // of a server without ranges
};

class HttpStore final : public ObjectStore {
 public:
  explicit HttpStore(std::shared_ptr<HttpTransport> transport) : transport_(std::move(transport)) {}

  Result<std::shared_ptr<const Object>> Open(const ObjectUri& uri) override {
    auto object = std::make_shared<HttpObject>(transport_, uri);
    TRY(object->Inspect());
    return std::shared_ptr<const Object>(std::move(object));
  }
  Status List(const ObjectUri& prefix, const VisitObject& /*visit*/) override {
    return Unimplemented(prefix.text() +
                         ": HTTP servers have no list of their files; name each of them");
  }
  Result<std::unique_ptr<ObjectWriter>> Create(const ObjectUri& uri) override {
    return Unimplemented(uri.text() +
                         ": nothing is written to HTTP servers; expected a local path, s3:// or "
                         "webhdfs://");
  }

 private:
  const std::shared_ptr<HttpTransport> transport_;
};

}  // namespace

std::unique_ptr<ObjectStore> MakeHttpStore(std::shared_ptr<HttpTransport> transport) {
  return std::make_unique<HttpStore>(std::move(transport));
}

Result<uint64_t> LengthOfContentRange(const std::string& value) {
  const size_t slash = value.find('/');
  uint64_t length = 0;
  const char* const end = value.data() + value.size();
  if (value.starts_with("bytes ") && slash != std::string::npos) {
    const auto parsed = std::from_chars(value.data() + slash + 1, end, length);
    if (parsed.ec == std::errc() && parsed.ptr == end && length < (uint64_t{1} << 62))
      return length;
  }
  return DataLoss("got the header Content-Range '" + value.substr(0, 100) +
                  "', expected 'bytes FIRST-LAST/LENGTH'");
}

}  // namespace shoal::data
