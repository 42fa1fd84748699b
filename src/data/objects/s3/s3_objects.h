// S3 and the stores that speak its protocol: signed requests, ranges, listings by pages, and
// multipart uploads. Reference: docs.aws.amazon.com/AmazonS3/latest/API.
#pragma once

#include <memory>

#include "data/objects/http_transport.h"
#include "data/objects/object.h"
#include "data/objects/s3/settings.h"

namespace shoal::data {

// Lengths of an upload's parts. S3 takes 5 MiB to 5 GiB, and 10,000 parts.
struct S3Upload {
  size_t first_part = 8 << 20;        // shorter objects are sent in one request
  uint64_t parts_of_one_size = 1000;  // after so many the length doubles
};

// Objects are pinned by their ETag (If-Match). One store serves all buckets.
std::unique_ptr<ObjectStore> MakeS3Store(S3Settings settings,
                                         std::shared_ptr<HttpTransport> transport,
                                         S3Upload upload = {});

}  // namespace shoal::data
