// Where S3 is, and with which credentials: the variables and the profile files of the AWS tools.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/status.h"
#include "data/objects/s3/signature.h"

namespace shoal::data {

struct S3Settings {
  S3Credentials credentials;
  std::string region = "us-east-1";
  // "https://HOST[:PORT]"; empty: Amazon's of the region.
  std::string endpoint;
  bool path_style = false;  // the bucket stands in the path, not in the host's name
  std::string authorities;  // PEM; empty: those of the machine

  // The server of a bucket, and the path before its keys: ("https://b.s3.eu.amazonaws.com", "").
  std::pair<std::string, std::string> PlaceOf(const std::string& bucket) const;
};

// Reads, in this order: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; the profile
// AWS_PROFILE (else "default") of AWS_SHARED_CREDENTIALS_FILE (else ~/.aws/credentials) and of
// AWS_CONFIG_FILE (else ~/.aws/config). Without any, requests are not signed. Region: AWS_REGION,
// AWS_DEFAULT_REGION, the profile. Endpoint: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's
// endpoint_url. Its s3.addressing_style is "path", "virtual" or "auto": path style for an endpoint
// that was named, and for buckets with a '.'. AWS_CA_BUNDLE: a file of authorities.
// InvalidArgument names the variable, or the file and line, that is wrong; a named profile that
// does not exist is an error.
Result<S3Settings> ReadS3Settings(const std::function<std::string(const char*)>& env);

// A profile file: section → name → value. Values of indented lines below "s3 =" have the name
// "s3.NAME". Sections "profile NAME" of a config file are NAME.
using Profiles = std::map<std::string, std::map<std::string, std::string>>;
Result<Profiles> ParseProfiles(std::string_view text, const std::string& file);

}  // namespace shoal::data
