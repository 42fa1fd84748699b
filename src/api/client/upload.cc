#include "api/client/upload.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <utility>

#include "api/rest/route.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "host/files/blob_cache.h"
#include "host/files/snapshot.h"
#include "rendezvous/logs/log_segment.h"

namespace shoal::api {
namespace {

constexpr int kAttempts = 6;
constexpr std::chrono::milliseconds kFirstPause{200};

void Pause(std::chrono::milliseconds pause) {
  Mutex mu;
  MutexLock lock(mu);
  CondVar never;
  (void)never.wait_for(lock, pause, [] { return false; });
}

// Repeats a request while the server cannot be reached.
template <typename Call>
auto WithPatience(Call call) -> decltype(call()) {
  std::chrono::milliseconds pause = kFirstPause;
  for (int attempt = 1;; ++attempt) {
    auto result = call();
    if (result.ok() || result.status().code() != Code::kUnavailable || attempt == kAttempts)
      return result;
    Pause(pause);
    pause *= 2;
  }
}

class Upload {
 public:
  Upload(const ApiClient& client, const UploadOptions& options)
      : client_(client), options_(options) {}

  Result<std::string> Run() {
    TRY_ASSIGN(host::BlobCache cache, host::BlobCache::Open(options_.cache));
    TRY_ASSIGN(const host::Snapshot snapshot,
               host::TakeSnapshot(options_.directory, &cache, {options_.cache}));
    std::map<std::string, int64_t> sizes;
    for (const host::ManifestEntry& entry : snapshot.manifest.entries) {
      if (entry.kind == host::TreeEntry::Kind::kFile) sizes[entry.sha256] = entry.size;
    }
    TRY_ASSIGN(const auto missing, FindMissing(sizes));
    int64_t bytes = 0;
    for (const auto& [sha256, received] : missing) bytes += sizes[sha256] - received;
    if (!missing.empty() && options_.on_note)
      options_.on_note(fmt::format("uploading {} files, {:.1f} MB", missing.size(),
                                   static_cast<double>(bytes) / 1e6));
    for (const auto& [sha256, received] : missing)
      TRY(Send({sha256, sizes[sha256]}, received, &cache));
    return host::ToText(snapshot.manifest);
  }

 private:
  // What the server lacks, and how much of it has arrived.
  Result<std::map<std::string, int64_t>> FindMissing(const std::map<std::string, int64_t>& sizes) {
    json::array digests;
    for (const auto& [sha256, size] : sizes) digests.emplace_back(sha256);
    json::object body{{"digests", std::move(digests)}};
    if (!options_.team.empty()) body["team"] = options_.team;
    TRY_ASSIGN(const json::object reply, WithPatience([&] {
                 return client_.CallJson("POST", "/api/v1/files/missing", body);
               }));
    std::map<std::string, int64_t> missing;
    const json::value* const list = reply.if_contains("missing");
    if (list == nullptr || !list->is_array()) return DataLoss("the server's list is damaged");
    for (const json::value& one : list->get_array()) {
      if (!one.is_object()) continue;
      const std::string sha256 = GetStringOr(one.get_object(), "sha256", "");
      if (sizes.contains(sha256)) missing[sha256] = GetIntOr(one.get_object(), "received", 0);
    }
    return missing;
  }

  Status Send(const host::Blob& blob, int64_t received, host::BlobCache* cache) {
    TRY_ASSIGN(const UniqueFd file, cache->OpenBlob(blob));
    int64_t at = received > blob.size ? 0 : received;
    do {
      TRY_ASSIGN(const std::string bytes, rendezvous::ReadAt(file.get(), at, kMaxChunk));
      const Result<int64_t> now = WithPatience([&] { return SendPiece(blob, at, bytes); });
      TRY(now.status());
      if (*now < 0) return Status::Ok();
      at = *now;
    } while (at < blob.size);
    return Status::Ok();
  }

  // How much has arrived; -1: all of it. A piece whose answer was lost has arrived already.
  Result<int64_t> SendPiece(const host::Blob& blob, int64_t at, const std::string& bytes) {
    ApiRequest request;
    request.method = "PUT";
    request.target = FileTarget(blob.sha256) + QueryText({{"team", options_.team},
                                                          {"offset", std::to_string(at)},
                                                          {"size", std::to_string(blob.size)}});
    request.content_type = "application/octet-stream";
    request.body = bytes;
    const Result<net::HttpReply> reply = client_.Call(request);
    if (reply.status().code() == Code::kFailedPrecondition) {
      TRY_ASSIGN(const json::object status,
                 client_.Get(FileTarget(blob.sha256) + QueryText({{"team", options_.team}})));
      return Received(status);
    }
    TRY(reply.status());
    TRY_ASSIGN(const json::object status, ParseJsonObject(reply->body));
    return Received(status);
  }

  static std::string FileTarget(const std::string& sha256) { return "/api/v1/files/" + sha256; }
  static int64_t Received(const json::object& status) {
    return GetBoolOr(status, "complete", false) ? -1 : GetIntOr(status, "received", 0);
  }

  const ApiClient& client_;
  const UploadOptions& options_;
};

}  // namespace

Result<std::string> UploadFiles(const ApiClient& client, const UploadOptions& options) {
  return Upload(client, options).Run();
}

}  // namespace shoal::api
