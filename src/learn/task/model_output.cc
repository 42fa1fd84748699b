#include "learn/task/model_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "data/objects/copy_object.h"
#include "data/objects/object_stores.h"

namespace shoal::learn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetadata = "model.json";

std::string FolderOf(const fs::path& output) {
  std::string folder = output.string();
  return folder.ends_with('/') ? folder : folder + "/";
}

// OK for an empty folder, and for one with a model.
Status CheckFolder(const std::string& folder) {
  data::ObjectStores stores;
  TRY_ASSIGN(const data::ObjectUri uri, data::ParseObjectUri(folder));
  TRY_ASSIGN(data::ObjectStore * store, stores.Find(uri));
  std::string other;
  bool model = false;
  const Status listed = store->List(uri, [&](const data::ObjectInfo& info) {
    const std::string name = info.uri.substr(std::min(folder.size(), info.uri.size()));
    if (name == kMetadata) model = true;
    if (!name.empty() && other.empty()) other = name;
    return Status::Ok();
  });
  if (listed.code() == Code::kNotFound) return Status::Ok();  // made by the upload
  TRY(listed);
  if (other.empty() || model) return Status::Ok();
  return FailedPrecondition(fmt::format(
      "output {} has {} and no model.json: it is no model; name another folder, so that nothing is "
      "overwritten",
      folder, other));
}

}  // namespace

Status CheckModelDestination(const fs::path& output, bool ask) {
  if (!data::IsRemoteUri(output.string())) return model::CheckModelOutput(output);
  const auto uri = data::ParseObjectUri(output.string());
  if (!uri.ok()) return uri.status().With("output");
  const bool readable_only =
      uri->scheme == data::ObjectScheme::kHttp || uri->scheme == data::ObjectScheme::kHttps;
  const std::string path =
      uri->path.substr(std::min(uri->path.find_first_not_of('/'), uri->path.size()));
  if (readable_only || path.empty()) {
    return InvalidArgument(fmt::format(
        "output: got {}, expected a directory, s3://BUCKET/FOLDER or webhdfs://HOST:PORT/FOLDER",
        output.string()));
  }
  return ask ? CheckFolder(FolderOf(output)) : Status::Ok();
}

Result<model::SavedModel> SaveModelAt(
    const fs::path& output, const std::function<Result<model::SavedModel>(const fs::path&)>& save) {
  if (!data::IsRemoteUri(output.string())) return save(output);
  TRY_ASSIGN(const TempDir scratch, TempDir::Create("shoal-model"));
  TRY_ASSIGN(model::SavedModel saved, save(scratch.path() / "model"));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(saved.directory))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names, {}, [](const std::string& name) { return name == kMetadata; });
  data::ObjectStores stores;
  for (const std::string& name : names) {
    TRY(data::CopyObject(&stores, (saved.directory / name).string(), FolderOf(output) + name)
            .status());
  }
  LogInfo("the model was uploaded to {}", output.string());
  saved.directory = output;
  return saved;
}

}  // namespace shoal::learn
