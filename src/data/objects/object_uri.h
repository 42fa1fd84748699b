// The name of an object: a local path, "https://HOST/PATH", "s3://BUCKET/KEY",
// "webhdfs://HOST:PORT/PATH" or "gate://DATA/OBJECT". Written by people, so every part of it is
// checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal::data {

enum class ObjectScheme : uint8_t { kLocal, kHttp, kHttps, kS3, kWebHdfs, kWebHdfsTls, kGate };

struct ObjectUri {
  ObjectScheme scheme = ObjectScheme::kLocal;
  // "HOST[:PORT]" of HTTP; the bucket of S3; "HOST:PORT[,HOST:PORT]" of WebHDFS; the
  // name of the job's data of a gate (data/gate); empty for a path.
  std::string authority;
  // The path of a file, the key of S3 without a leading '/', the path (and query of HTTP) with it.
  std::string path;

  // As people write it.
  std::string text() const;
  // The same place with another path.
  ObjectUri WithPath(std::string other) const;
};

// Whether `text` names something that is not a file of this machine: "SCHEME://…" except "file://".
bool IsRemoteUri(std::string_view text);

// InvalidArgument says what is wrong: an unknown scheme (with those that are known), no bucket, a
// password in the URL (URLs are kept in job records), or a control character.
Result<ObjectUri> ParseObjectUri(std::string_view text);

}  // namespace shoal::data
