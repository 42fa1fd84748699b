#include "api/client/remote_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "api/client/remote_secrets.h"
#include "api/client/upload.h"
#include "base/file.h"
#include "base/id.h"
#include "base/mutex.h"
#include "data/objects/object_uri.h"
#include "net/http/http_session.h"
#include "serving/registry/history_json.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;
using serving::ModelHistory;
using serving::ModelVersion;

constexpr uint64_t kPiece = uint64_t{32} << 20;

class RemoteModels final : public serving::Models {
 public:
  RemoteModels(const ApiClient* client, const std::string& team, fs::path cache)
      : client_(client),
        team_(team),
        place_("the team " + team + " of " + client->url()),
        target_("/api/v1/teams/" + net::PercentEncode(team) + "/models"),
        cache_(std::move(cache)) {}

  const std::string& place() const override { return place_; }

  Result<std::vector<std::string>> Names() override {
    TRY_ASSIGN(const json::object reply, client_->Get(target_));
    const json::value* const items = reply.if_contains("items");
    if (items == nullptr || !items->is_array())
      return DataLoss("the server's answer has no list of items");
    std::vector<std::string> names;
    for (const json::value& item : items->get_array()) {
      if (!item.is_object()) return DataLoss("the server's list has an item that is no object");
      TRY_ASSIGN(std::string name, GetString(item.get_object(), "name"));
      names.push_back(std::move(name));
    }
    return names;
  }

  Result<ModelHistory> Read(const std::string& name) override {
    TRY(serving::CheckModelName(name));
    TRY_ASSIGN(const json::object reply, client_->Get(TargetOf(name) + "?whole=true"));
    return serving::HistoryFromJson(reply);
  }

  Result<bool> Refresh(const std::string& name, ModelHistory* history) override {
    auto read = Read(name);
    if (read.status().code() == Code::kNotFound) return false;
    TRY(read.status());
    const bool more = SameText(name, *read) != SameText(name, *history);
    *history = std::move(*read);
    return more;
  }

  Result<ModelVersion> Add(const std::string& name, const std::string& model,
                           const serving::Provenance& from) override {
    TRY(serving::CheckModelName(name));
    if (data::IsRemoteUri(model))
      return InvalidArgument(model +
                             ": a server takes the files of a directory of this machine; copy the "
                             "model to one first");
    std::error_code error;
    if (!fs::is_directory(model, error))
      return NotFound(model + ": there is no such directory of a model");
    UploadOptions upload;
    upload.directory = model;
    upload.cache = cache_;
    upload.team = team_;
    TRY_ASSIGN(const std::string manifest, UploadFiles(*client_, upload));
    const std::string source =
        from.source.empty() ? fs::absolute(model, error).string() : from.source;
    TRY_ASSIGN(const json::object reply,
               client_->CallJson("POST", TargetOf(name) + "/versions",
                                 {{"manifest", manifest}, {"source", source}}));
    return VersionIn(reply);
  }

  Status Tag(const std::string& name, const std::string& tag, uint64_t version,
             const std::string& /*by*/) override {
    TRY(serving::CheckModelName(name));
    TRY(serving::CheckTag(tag));
    const std::string target = TargetOf(name) + "/tags/" + net::PercentEncode(tag);
    if (version == 0) return client_->CallJson("DELETE", target).status();
    return client_->CallJson("PUT", target, {{"version", std::to_string(version)}}).status();
  }

  Result<uint64_t> Rollback(const std::string& name, const std::string& /*by*/) override {
    TRY(serving::CheckModelName(name));
    TRY_ASSIGN(const json::object reply, client_->CallJson("POST", TargetOf(name) + "/rollback"));
    return static_cast<uint64_t>(std::max<int64_t>(0, GetIntOr(reply, "promoted", 0)));
  }

  Status Delete(const std::string& name, uint64_t version, const std::string& /*by*/) override {
    TRY(serving::CheckModelName(name));
    return client_->CallJson("DELETE", VersionTarget(name, version)).status();
  }

  Result<fs::path> Fetch(const std::string& name, const ModelVersion& version,
                         const fs::path& scratch) override {
    const fs::path to = scratch / fmt::format("{}@{}", name, version.number);
    TRY(Download(name, version, to));
    return to;
  }

  Status Export(const std::string& name, const ModelVersion& version,
                const std::string& to) override {
    if (data::IsRemoteUri(to))
      return InvalidArgument(to + ": expected a directory of this machine for a server's model");
    std::error_code error;
    if (fs::exists(to, error) && !fs::is_empty(to, error))
      return AlreadyExists(to + " is not empty; name a new directory");
    return Download(name, version, to);
  }

 private:
  std::string TargetOf(const std::string& name) const {
    return target_ + "/" + net::PercentEncode(name);
  }
  std::string VersionTarget(const std::string& name, uint64_t version) const {
    return fmt::format("{}/versions/{}", TargetOf(name), version);
  }

  static std::string SameText(const std::string& name, const ModelHistory& history) {
    return ToText(serving::HistoryJson(name, history, serving::Detail::kBrief).at("versions"));
  }

  static Result<ModelVersion> VersionIn(const json::object& reply) {
    json::object entry = reply;
    entry["op"] = "add";
    const int64_t number = GetIntOr(reply, "version", 0);
    entry["version"] = 1;
    ModelHistory one;
    TRY(one.Apply(entry));
    ModelVersion version = one.versions().front();
    version.number = static_cast<uint64_t>(std::max<int64_t>(0, number));
    return version;
  }

  // Names were checked when the entry was read: none leads out of `to`.
  Status Download(const std::string& name, const ModelVersion& version, const fs::path& to) const {
    for (const serving::VersionFile& file : version.files) {
      const fs::path path = to / file.name;
      TRY(MakeDirectories(path.parent_path()));
      TRY_ASSIGN(AtomicFile copy, AtomicFile::Create(path));
      Sha256 digest;
      for (uint64_t at = 0; at < file.bytes;) {
        ApiRequest request;
        request.target = VersionTarget(name, version.number) + "/files" +
                         QueryText({{"path", file.name},
                                    {"offset", std::to_string(at)},
                                    {"limit", std::to_string(std::min(kPiece, file.bytes - at))}});
        TRY_ASSIGN(const net::HttpReply reply, client_->Call(request));
        if (reply.body.empty()) return DataLoss(file.name + " ends early on the server");
        digest.Add(reply.body);
        TRY(copy.Write(reply.body));
        at += reply.body.size();
      }
      if (digest.Finish() != file.sha256)
        return DataLoss(file.name +
                        " is not the file that was registered (its SHA-256 differs); restore it on "
                        "the server or use another version");
      TRY(copy.Commit(false));
    }
    return Status::Ok();
  }

  const ApiClient* const client_;
  const std::string team_;
  const std::string place_;
  const std::string target_;
  const fs::path cache_;
};

}  // namespace

Result<std::unique_ptr<serving::Models>> MakeRemoteModels(const ApiClient* client, std::string team,
                                                          fs::path cache) {
  if (team.empty()) {
    TRY_ASSIGN(team, UsualTeam(*client));
  }
  return std::unique_ptr<serving::Models>(
      std::make_unique<RemoteModels>(client, team, std::move(cache)));
}

}  // namespace shoal::api
