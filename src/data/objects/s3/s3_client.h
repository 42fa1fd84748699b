// One request to S3: signed, repeated, and its error in words. For s3_objects.cc and s3_writer.cc.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/objects/http_transport.h"
#include "data/objects/object.h"
#include "data/objects/s3/s3_objects.h"
#include "data/objects/s3/settings.h"
#include "data/objects/xml.h"

namespace shoal::data {

struct S3Request {
  std::string method = "GET";
  std::string query;  // percent-encoded
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  size_t max_body = 1 << 20;
  bool repeat = true;
};

// Thread-safe.
class S3Client {
 public:
  S3Client(S3Settings settings, std::shared_ptr<HttpTransport> transport)
      : settings_(std::move(settings)), transport_(std::move(transport)) {}

  // The reply, whatever its status. Errors name `uri`, the object or bucket.
  Result<net::HttpReply> Send(const ObjectUri& uri, const S3Request& request) const;

  // What a reply with an unexpected status says, in one sentence with what to do.
  Status ErrorOf(const ObjectUri& uri, const net::HttpReply& reply) const;

 private:
  const S3Settings settings_;
  const std::shared_ptr<HttpTransport> transport_;
};

std::unique_ptr<ObjectWriter> MakeS3Writer(std::shared_ptr<const S3Client> client, ObjectUri uri,
                                           S3Upload upload);

}  // namespace shoal::data
