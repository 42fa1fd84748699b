#include "data/objects/object_uri.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shoal::data {
namespace {

constexpr size_t kMaxUri = 8 << 10;

struct SchemeName {
  std::string_view prefix;
  ObjectScheme scheme;
};

// The first name of a scheme is the one that text() gives.
constexpr std::array<SchemeName, 9> kSchemes = {{{"file", ObjectScheme::kLocal},
                                                 {"http", ObjectScheme::kHttp},
                                                 {"https", ObjectScheme::kHttps},
                                                 {"s3", ObjectScheme::kS3},
                                                 {"s3a", ObjectScheme::kS3},
                                                 {"webhdfs", ObjectScheme::kWebHdfs},
                                                 {"hdfs", ObjectScheme::kWebHdfs},
                                                 {"swebhdfs", ObjectScheme::kWebHdfsTls},
                                                 {"gate", ObjectScheme::kGate}}};

std::string_view NameOf(ObjectScheme scheme) {
  for (const SchemeName& one : kSchemes) {
    if (one.scheme == scheme) return one.prefix;
  }
  return "";
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

std::string Shown(std::string_view text) {
  std::string shown(text.substr(0, 200));
  std::replace_if(shown.begin(), shown.end(), IsControl, '?');
  return shown;
}

Status CheckBucket(std::string_view text, std::string_view bucket) {
  const bool good =
      !bucket.empty() && bucket.size() <= 255 && std::ranges::all_of(bucket, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '-' || c == '_';
      });
  if (good) return Status::Ok();
  return InvalidArgument(fmt::format(
      "got {}, expected s3://BUCKET/KEY with a bucket of letters, digits, '.', '-' and '_'",
      Shown(text)));
}

// RPC ports of name nodes, which do not speak HTTP.
Status CheckHdfsPort(std::string_view text, std::string_view authority) {
  for (const std::string_view port : {":8020", ":9000"}) {
    if (!authority.ends_with(port)) continue;
    return InvalidArgument(fmt::format(
        "got {}: {} is the name node's RPC port; name its HTTP port, such as webhdfs://HOST:9870",
        Shown(text), port.substr(1)));
  }
  return Status::Ok();
}

}  // namespace

std::string ObjectUri::text() const {
  if (scheme == ObjectScheme::kLocal) return path;
  std::string_view slash = scheme == ObjectScheme::kS3 ? "/" : "";
  return fmt::format("{}://{}{}{}", NameOf(scheme), authority, slash, path);
}

ObjectUri ObjectUri::WithPath(std::string other) const {
  return {scheme, authority, std::move(other)};
}

bool IsRemoteUri(std::string_view text) {
  const size_t colon = text.find("://");
  if (colon == 0 || colon == std::string_view::npos) return false;
  const std::string_view scheme = text.substr(0, colon);
  return scheme != "file" && std::ranges::all_of(scheme, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '+' || c == '-' || c == '.';
         });
}

Result<ObjectUri> ParseObjectUri(std::string_view text) {
  if (text.empty()) return InvalidArgument("got an empty name of an object");
  if (text.size() > kMaxUri)
    return InvalidArgument(
        fmt::format("got a name of more than {} bytes: {}…", kMaxUri, Shown(text.substr(0, 60))));
  if (!IsRemoteUri(text)) {
    if (text.starts_with("file://")) text.remove_prefix(7);
    return ObjectUri{ObjectScheme::kLocal, "", std::string(text)};
  }
  const size_t colon = text.find("://");
  const std::string_view name = text.substr(0, colon);
  const auto* const known =
      std::ranges::find_if(kSchemes, [name](const SchemeName& one) { return one.prefix == name; });
  if (known == kSchemes.end()) {
    return InvalidArgument(fmt::format(
        "got {}: the scheme {} is not known; expected a local path, http://, https://, s3:// or "
        "webhdfs://",
        Shown(text), Shown(name)));
  }
  std::string_view rest = text.substr(colon + 3);
  const size_t slash = std::min(rest.find('/'), rest.size());
  ObjectUri uri{known->scheme, std::string(rest.substr(0, slash)), std::string(rest.substr(slash))};
  if (uri.scheme == ObjectScheme::kS3) {
    TRY(CheckBucket(text, uri.authority));
    if (!uri.path.empty()) uri.path.erase(0, 1);
    return uri;
  }
  if (uri.authority.find('@') != std::string::npos) {
    return InvalidArgument(
        fmt::format("got a user or password in a {}:// URL, which would be kept in records of "
                    "jobs; leave it out",
                    name));
  }
  if (uri.authority.empty() || std::ranges::any_of(text, IsControl))
    return InvalidArgument(fmt::format("got {}, expected {}://HOST/PATH", Shown(text), name));
  if (uri.path.empty()) uri.path = "/";
  if (uri.scheme == ObjectScheme::kWebHdfs) TRY(CheckHdfsPort(text, uri.authority));
  return uri;
}

}  // namespace shoal::data
