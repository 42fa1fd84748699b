// AWS Signature Version 4 (docs.aws.amazon.com, "Signing AWS API requests"): the header
// Authorization of a request to S3.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/http.h"

namespace shoal::data {

struct S3Credentials {
  std::string access_key;  // empty: requests are not signed, which suffices for public buckets
  std::string secret_key;
  std::string session_token;  // of temporary credentials; may be empty
  std::string origin;         // where they come from, for messages: "the environment"
};

struct SigningScope {
  std::string region;
  std::string service = "s3";
};

// Adds x-amz-date, x-amz-content-sha256, x-amz-security-token and Authorization. All headers of the
// request and `host` are signed. The target must be percent-encoded as S3 wants it: each byte of a
// path but unreserved ones and '/', each of the query's names and values but unreserved ones.
void SignRequest(const S3Credentials& credentials, const SigningScope& scope,
                 const std::string& host, WallTime now, net::HttpRequest* request);

// The parts of it, as the published test vectors have them. `timestamp`: "20130524T000000Z";
// `headers`: names in lower case, sorted.
using SignedHeaders = std::vector<std::pair<std::string, std::string>>;
std::string CanonicalRequest(const std::string& method, const std::string& target,
                             const SignedHeaders& headers, const std::string& payload_digest);
std::string SignatureOf(const S3Credentials& credentials, const SigningScope& scope,
                        const std::string& timestamp, const std::string& canonical_request);

// A key as it stands in a path: '/' stays.
std::string EncodeKey(std::string_view key);

}  // namespace shoal::data
