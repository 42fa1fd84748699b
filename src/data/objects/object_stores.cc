#include "data/objects/object_stores.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "data/gate/gate_objects.h"
#include "data/objects/http_objects.h"
#include "data/objects/local_objects.h"
#include "data/objects/s3/s3_objects.h"
#include "data/objects/s3/settings.h"
#include "data/objects/webhdfs/webhdfs_objects.h"

namespace shoal::data {
namespace {

constexpr const char* kWildcards = "*?[";

bool IsPattern(const ObjectUri& uri) {
  const bool http = uri.scheme == ObjectScheme::kHttp || uri.scheme == ObjectScheme::kHttps;
  return !http && uri.path.find_first_of(kWildcards) != std::string::npos;
}

// Whether a part of the path below `folder` marks a file that is not data.
bool IsHidden(std::string_view path, size_t folder) {
  path.remove_prefix(std::min(folder, path.size()));
  for (;;) {
    if (path.starts_with('.') || path.starts_with('_')) return true;
    const size_t slash = path.find('/');
    if (slash == std::string_view::npos) return false;
    path.remove_prefix(slash + 1);
  }
}

Result<std::unique_ptr<ObjectStore>> MakeStore(const ObjectUri& uri, const ObjectContext& context) {
  switch (uri.scheme) {
    case ObjectScheme::kLocal:
      return MakeLocalStore();
    case ObjectScheme::kHttp:
    case ObjectScheme::kHttps:
      return MakeHttpStore(std::make_shared<HttpTransport>(context, ""));
    case ObjectScheme::kS3: {
      TRY_ASSIGN(S3Settings settings, ReadS3Settings(context.env));
      auto transport = std::make_shared<HttpTransport>(context, settings.authorities);
      return MakeS3Store(std::move(settings), std::move(transport));
    }
    case ObjectScheme::kGate:
      return MakeGateStore(context);
    case ObjectScheme::kWebHdfs:
    case ObjectScheme::kWebHdfsTls:
      break;
  }
  return MakeWebHdfsStore(ReadWebHdfsSettings(context.env), uri,
                          std::make_shared<HttpTransport>(context, ""));
}

}  // namespace

ObjectStores::ObjectStores(ObjectContext context) : context_(std::move(context)) {}

Result<ObjectStore*> ObjectStores::Find(const ObjectUri& uri) {
  const bool hdfs = uri.scheme == ObjectScheme::kWebHdfs || uri.scheme == ObjectScheme::kWebHdfsTls;
  const std::string key =
      fmt::format("{} {}", static_cast<int>(uri.scheme), hdfs ? uri.authority : "");
  const MutexLock lock(mu_);
  std::unique_ptr<ObjectStore>& store = stores_[key];
  if (store == nullptr) {
    TRY_ASSIGN(store, MakeStore(uri, context_));
  }
  return store.get();
}

Result<std::shared_ptr<const Object>> ObjectStores::Open(const std::string& uri) {
  TRY_ASSIGN(const ObjectUri parsed, ParseObjectUri(uri));
  TRY_ASSIGN(ObjectStore * store, Find(parsed));
  return store->Open(parsed);
}

Result<std::unique_ptr<ObjectWriter>> ObjectStores::Create(const std::string& uri) {
  TRY_ASSIGN(const ObjectUri parsed, ParseObjectUri(uri));
  TRY_ASSIGN(ObjectStore * store, Find(parsed));
  return store->Create(parsed);
}

Result<std::vector<ObjectInfo>> ObjectStores::List(const std::string& text) {
  TRY_ASSIGN(const ObjectUri uri, ParseObjectUri(text));
  TRY_ASSIGN(ObjectStore * store, Find(uri));
  const bool folder =
      uri.path.ends_with('/') || (uri.scheme == ObjectScheme::kS3 && uri.path.empty());
  std::vector<ObjectInfo> found;
  if (!IsPattern(uri) && !folder) {
    TRY_ASSIGN(const auto object, store->Open(uri));
    found.push_back(object->info());
    return found;
  }
  const std::string start = uri.path.substr(0, uri.path.find_first_of(kWildcards));
  const std::string below = uri.WithPath(folder ? uri.path : start).text();
  const std::string pattern = uri.text();
  TRY(store->List(uri.WithPath(folder ? uri.path : start), [&](const ObjectInfo& info) -> Status {
    const bool match = folder ? !info.uri.ends_with('/') && !IsHidden(info.uri, below.size())
                              : ::fnmatch(pattern.c_str(), info.uri.c_str(), FNM_PATHNAME) == 0;
    if (!match) return Status::Ok();
    if (found.size() == kMaxMatches)
      return ResourceExhausted(
          fmt::format("{} names more than {} objects; name fewer", text, kMaxMatches));
    found.push_back(info);
    return Status::Ok();
  }));
  if (found.empty())
    return NotFound(text + (folder ? ": there is nothing below it" : ": it matches no object"));
  std::ranges::sort(found, {}, &ObjectInfo::uri);
  return found;
}

Result<std::vector<std::string>> ObjectStores::Expand(const std::string& text) {
  TRY_ASSIGN(const ObjectUri uri, ParseObjectUri(text));
  if (!IsPattern(uri) && !uri.path.ends_with('/') && !uri.path.empty())
    return std::vector<std::string>{uri.text()};
  TRY_ASSIGN(const std::vector<ObjectInfo> found, List(text));
  std::vector<std::string> names;
  for (const ObjectInfo& one : found) names.push_back(one.uri);
  return names;
}

}  // namespace shoal::data
