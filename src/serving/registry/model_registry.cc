#include "serving/registry/model_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/id.h"
#include "base/utf8.h"
#include "data/objects/object_uri.h"
#include "job/text/errors.h"
#include "model/save_model.h"

namespace shoal::serving {
namespace {

constexpr size_t kPiece = 1 << 20;
constexpr int kAttempts = 100;
constexpr std::string_view kMetadataFile = "model.json";
constexpr size_t kMaxMetadata = 64 << 20;
constexpr size_t kMaxSummary = 200'000;  // of JSON

std::string LogOf(const std::string& name, uint64_t number) {
  return fmt::format("{}/log/{:08}.json", name, number);
}
std::string FolderOf(const std::string& name, const ModelVersion& version) {
  return fmt::format("{}/files/{}", name, version.folder);
}

std::string DigestOfFiles(const std::vector<VersionFile>& files) {
  std::string text;
  for (const VersionFile& file : files) text += file.sha256 + " " + file.name + "\n";
  return Sha256Hex(text);
}

// Calls `take` with all bytes of an object; its digest.
Result<VersionFile> ReadObject(data::ObjectStores& stores, const std::string& uri,
                               const std::function<Status(std::string_view)>& take) {
  TRY_ASSIGN(const auto object, stores.Open(uri));
  Sha256 digest;
  std::string piece(std::min<uint64_t>(kPiece, std::max<uint64_t>(1, object->info().bytes)), '\0');
  VersionFile file;
  while (file.bytes < object->info().bytes) {
    TRY_ASSIGN(const size_t got, object->ReadAt(file.bytes, piece.data(), piece.size()));
    if (got == 0) return DataLoss(uri + " is shorter than it was when it was opened");
    digest.Add({piece.data(), got});
    TRY(take({piece.data(), got}));
    file.bytes += got;
  }
  file.sha256 = digest.Finish();
  return file;
}

Result<std::string> ReadShort(data::ObjectStores& stores, const std::string& uri, size_t most) {
  std::string bytes;
  const auto read = ReadObject(stores, uri, [&](std::string_view piece) {
    if (bytes.size() + piece.size() > most)
      return DataLoss(fmt::format("{} is longer than {} bytes", uri, most));
    bytes += piece;
    return Status::Ok();
  });
  if (!read.ok()) return read.status();
  return bytes;
}

}  // namespace

json::object SummaryOf(const json::object& metadata) {
  json::object summary = metadata;
  if (json::value* const data = summary.if_contains("data"); data != nullptr && data->is_object())
    data->get_object().erase("columns");
  for (const char* const name : {"assessment", "loss", "files"}) {
    if (ToText(summary).size() > kMaxSummary) summary.erase(name);
  }
  if (ToText(summary).size() <= kMaxSummary) return summary;
  return {{"format", GetStringOr(metadata, "format", "")}};
}

Result<std::unique_ptr<ModelRegistry>> ModelRegistry::Open(data::ObjectStores* stores,
                                                           const std::string& root,
                                                           const Clock* clock) {
  TRY_ASSIGN(const data::ObjectUri uri, data::ParseObjectUri(root));
  using Scheme = data::ObjectScheme;
  if (uri.scheme == Scheme::kHttp || uri.scheme == Scheme::kHttps || uri.scheme == Scheme::kGate) {
    return InvalidArgument(root +
                           ": a registry is a directory, s3://BUCKET/PREFIX or webhdfs://…, since "
                           "versions are written to it");
  }
  std::string place = root;
  if (!data::IsRemoteUri(root)) {
    std::error_code error;
    place = std::filesystem::absolute(uri.path, error).lexically_normal().string();
  }
  while (place.size() > 1 && place.ends_with('/')) place.pop_back();
  return std::unique_ptr<ModelRegistry>(new ModelRegistry(stores, std::move(place), clock));
}

std::string ModelRegistry::Below(std::string_view path) const {
  return fmt::format("{}/{}", root_, path);
}

Result<bool> ModelRegistry::Refresh(const std::string& name, ModelHistory* history) {
  bool more = false;
  for (;;) {
    const std::string uri = Below(LogOf(name, history->entries() + 1));
    const auto bytes = ReadShort(stores_, uri, data::kMaxNewObject);
    if (bytes.status().code() == Code::kNotFound) return more;
    if (!bytes.ok()) return bytes.status();
    const auto entry = ParseJsonObject(*bytes);
    if (!entry.ok()) return DataLoss(uri + ": " + entry.status().message());
    TRY(history->Apply(*entry).With(uri));
    more = true;
  }
}

Result<ModelHistory> ModelRegistry::Read(const std::string& name) {
  TRY(CheckModelName(name));
  ModelHistory history;
  TRY_ASSIGN(const bool any, Refresh(name, &history));
  if (any) return history;
  const auto names = Names();
  return NotFound(fmt::format("the registry {} has no model {}{}", root_, name,
                              names.ok() ? job::DidYouMean(name, *names) : ""));
}

Result<std::vector<std::string>> ModelRegistry::Names() {
  std::set<std::string> names;
  TRY_ASSIGN(const data::ObjectUri place, data::ParseObjectUri(root_ + "/"));
  TRY_ASSIGN(data::ObjectStore* const store, stores_.Find(place));
  const std::string prefix = place.text();
  const Status listed = store->List(place, [&](const data::ObjectInfo& info) {
    if (!info.uri.starts_with(prefix)) return Status::Ok();
    const std::string_view path = std::string_view(info.uri).substr(prefix.size());
    const size_t slash = path.find('/');
    if (slash != std::string_view::npos && path.substr(slash).starts_with("/log/"))
      names.emplace(path.substr(0, slash));
    return Status::Ok();
  });
  if (!listed.ok() && listed.code() != Code::kNotFound) return listed;
  return std::vector<std::string>(names.begin(), names.end());
}

Result<ModelHistory> ModelRegistry::Append(const std::string& name, const std::string& by,
                                           const Decide& decide) {
  TRY(CheckModelName(name));
  ModelHistory history;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    TRY(Refresh(name, &history).status());
    TRY_ASSIGN(json::object entry, decide(history));
    entry["by"] = by;
    entry["at"] = FormatWall(clock_.Wall());
    entry["entry"] = RandomHex(16);  // so that a repeated request knows its own
    // Before it is written: nothing that a reader refuses may stand in the log.
    ModelHistory after = history;
    TRY(after.Apply(entry));
    TRY_ASSIGN(const data::ObjectUri uri,
               data::ParseObjectUri(Below(LogOf(name, history.entries() + 1))));
    TRY_ASSIGN(data::ObjectStore* const store, stores_.Find(uri));
    const Status made = store->CreateNew(uri, ToText(entry));
    if (made.ok()) return after;
    if (made.code() != Code::kAlreadyExists) return made;
  }
  return Unavailable(fmt::format(
      "{}: other processes have changed the model {} times meanwhile; try again", name, kAttempts));
}

Result<VersionFile> ModelRegistry::CopyFile(const std::string& from, const std::string& to,
                                            const std::string& name) {
  TRY_ASSIGN(const auto writer, stores_.Create(to));
  TRY_ASSIGN(VersionFile file, ReadObject(stores_, from, [&](std::string_view bytes) {
               return writer->Append(bytes);
             }));
  TRY(writer->Finish().status());
  file.name = name;
  return file;
}

Result<std::vector<VersionFile>> ModelRegistry::CopyFiles(const std::string& from,
                                                          const std::string& to) {
  const std::string folder = from.ends_with('/') ? from : from + "/";
  const auto objects = stores_.Expand(folder);
  if (!objects.ok()) return objects.status();
  if (objects->size() > kMaxVersionFiles) {
    return InvalidArgument(fmt::format("{} has more than {} files; name the directory of a model",
                                       from, kMaxVersionFiles));
  }
  std::vector<VersionFile> files;
  for (const std::string& object : *objects) {
    if (!object.starts_with(folder)) return Internal(object + " is not below " + folder);
    const std::string name = object.substr(folder.size());
    TRY_ASSIGN(VersionFile file, CopyFile(object, to + "/" + name, name));
    files.push_back(std::move(file));
  }
  return files;
}

Result<std::vector<VersionFile>> ModelRegistry::TakeFiles(const std::string& from,
                                                          const std::string& to,
                                                          const SourceAccess& access) {
  TRY_ASSIGN(const ModelSource source, ModelSource::Open(from, access));
  TRY_ASSIGN(const std::vector<std::string> names, source.List());
  std::vector<VersionFile> files;
  for (const std::string& name : names) {
    TRY_ASSIGN(VersionFile file, source.Take(name, std::filesystem::path(to) / name));
    files.push_back(std::move(file));
  }
  return files;
}

Result<ModelVersion> ModelRegistry::AddAllowed(const std::string& name, const std::string& model,
                                               const Provenance& from, const SourceAccess& access,
                                               const Allow& allow) {
  TRY(CheckModelName(name));
  std::string source = model;
  const bool local = !data::IsRemoteUri(model);
  if (local) {
    std::error_code error;
    source = std::filesystem::absolute(model, error).lexically_normal().string();
  }
  ModelHistory before;
  TRY(Refresh(name, &before).status());
  TRY(allow(before));
  ModelVersion version;
  version.job = from.job;
  version.source = from.source.empty() ? source : from.source;
  version.folder = RandomHex(16);
  version.created = FormatWall(clock_.Wall());
  const std::string folder = Below(FolderOf(name, version));
  auto files = local && !data::IsRemoteUri(root_) ? TakeFiles(source, folder, access)
                                                  : CopyFiles(source, folder);
  const auto add = [&]() -> Result<ModelVersion> {
    TRY(files.status());
    version.files = std::move(*files);
    version.digest = DigestOfFiles(version.files);
    const auto described =
        std::find_if(version.files.begin(), version.files.end(),
                     [](const VersionFile& file) { return file.name == kMetadataFile; });
    if (described != version.files.end()) {
      TRY_ASSIGN(const std::string text,
                 ReadShort(stores_, folder + "/" + described->name, kMaxMetadata));
      const auto metadata = ParseJsonObject(text);
      if (!metadata.ok()) return DataLoss(model + "/model.json: " + metadata.status().message());
      version.metadata = SummaryOf(*metadata);
    }
    TRY_ASSIGN(const ModelHistory after, Append(name, from.by, [&](const ModelHistory& history) {
                 const Status allowed = allow(history);
                 if (!allowed.ok()) return Result<json::object>(allowed);
                 version.number = history.versions().size() + 1;
                 return Result<json::object>(EntryOf(version));
               }));
    return after.versions()[version.number - 1];
  };
  auto added = add();
  if (!added.ok()) (void)RemoveFolder(FolderOf(name, version));  // no entry names it
  return added;
}

Result<ModelVersion> ModelRegistry::Add(const std::string& name, const std::string& model,
                                        const Provenance& from, const SourceAccess& access) {
  return AddAllowed(name, model, from, access, [](const ModelHistory&) { return Status::Ok(); });
}

Result<ModelVersion> ModelRegistry::AddOnce(const std::string& name, const std::string& model,
                                            const Provenance& from, const SourceAccess& access) {
  return AddAllowed(name, model, from, access, [&](const ModelHistory& history) {
    for (const ModelVersion& version : history.versions()) {
      if (version.job == from.job)
        return AlreadyExists(
            fmt::format("the model of job {} is {}@{} already", from.job, name, version.number));
    }
    return Status::Ok();
  });
}

Status ModelRegistry::Tag(const std::string& name, const std::string& tag, uint64_t version,
                          const std::string& by) {
  TRY(CheckTag(tag));
  return Append(name, by,
                [&](const ModelHistory& history) -> Result<json::object> {
                  if (version == 0) {
                    if (!history.Tagged(tag))
                      return NotFound(name + ": no version has the tag " + tag);
                    return json::object{{"op", "untag"}, {"tag", tag}};
                  }
                  const auto found = history.Find(version);
                  if (!found.ok()) return found.status().With(name);
                  return json::object{{"op", "tag"}, {"tag", tag}, {"version", version}};
                })
      .status();
}

Result<uint64_t> ModelRegistry::Rollback(const std::string& name, const std::string& by) {
  TRY_ASSIGN(const ModelHistory after,
             Append(name, by, [&](const ModelHistory& history) -> Result<json::object> {
               if (history.entries() == 0) return NotFound("there is no model " + name);
               if (!history.Before(kPromoted)) {
                 return FailedPrecondition(
                     name + ": no version was promoted before the one that is promoted now");
               }
               return json::object{{"op", "rollback"}, {"tag", kPromoted}};
             }));
  return *after.Tagged(kPromoted);
}

Status ModelRegistry::Delete(const std::string& name, uint64_t version, const std::string& by) {
  std::string folder;
  TRY(Append(name, by, [&](const ModelHistory& history) -> Result<json::object> {
        const auto found = history.Find(version);
        if (!found.ok()) return found.status().With(name);
        const std::vector<std::string> tags = history.TagsOf(version);
        if (!tags.empty()) {
          return FailedPrecondition(
              fmt::format("{}@{} is protected by the tag {}; remove that first: shoal models "
                          "tag {} {} --remove",
                          name, version, fmt::join(tags, ", "), name, tags.front()));
        }
        folder = FolderOf(name, **found);
        return json::object{{"op", "delete"}, {"version", version}};
      }).status());
  return RemoveFolder(folder);
}

Status ModelRegistry::RemoveFolder(const std::string& folder) {
  if (!data::IsRemoteUri(root_)) {
    std::error_code error;
    std::filesystem::remove_all(Below(folder), error);
    return error ? ErrnoStatus(error.value(), "removing " + Below(folder)) : Status::Ok();
  }
  TRY_ASSIGN(const data::ObjectUri place, data::ParseObjectUri(Below(folder) + "/"));
  TRY_ASSIGN(data::ObjectStore* const store, stores_.Find(place));
  std::vector<std::string> objects;
  TRY(store->List(place, [&](const data::ObjectInfo& info) {
    objects.push_back(info.uri);
    return Status::Ok();
  }));
  for (const std::string& object : objects) {
    TRY_ASSIGN(const data::ObjectUri uri, data::ParseObjectUri(object));
    TRY(store->Remove(uri));
  }
  return Status::Ok();
}

Status ModelRegistry::CheckFile(const std::string& uri, const VersionFile& file) {
  const auto read = ReadObject(stores_, uri, [](std::string_view) { return Status::Ok(); });
  if (!read.ok()) return read.status();
  if (read->sha256 == file.sha256 && read->bytes == file.bytes) return Status::Ok();
  return DataLoss(uri +
                  " is not the file that was registered (its SHA-256 differs); restore it or "
                  "use another version");
}

Status ModelRegistry::CopyVersion(const std::string& name, const ModelVersion& version,
                                  const std::string& to) {
  for (const VersionFile& file : version.files) {
    const std::string from = Below(FolderOf(name, version) + "/" + file.name);
    TRY_ASSIGN(const VersionFile copied, CopyFile(from, to + "/" + file.name, file.name));
    if (copied.sha256 == file.sha256) continue;
    return DataLoss(from + " is not the file that was registered (its SHA-256 differs)");
  }
  return Status::Ok();
}

Result<std::filesystem::path> ModelRegistry::Fetch(const std::string& name,
                                                   const ModelVersion& version,
                                                   const std::filesystem::path& scratch) {
  if (data::IsRemoteUri(root_)) {
    const std::filesystem::path to = scratch / fmt::format("{}@{}", name, version.number);
    TRY(CopyVersion(name, version, to.string()));
    return to;
  }
  for (const VersionFile& file : version.files)
    TRY(CheckFile(Below(FolderOf(name, version) + "/" + file.name), file));
  return std::filesystem::path(Below(FolderOf(name, version)));
}

Result<std::filesystem::path> ModelRegistry::DirectoryOf(const std::string& name,
                                                         const ModelVersion& version) const {
  if (data::IsRemoteUri(root_))
    return FailedPrecondition("the registry " + root_ + " is no directory of this machine");
  return std::filesystem::path(Below(FolderOf(name, version)));
}

Status ModelRegistry::Export(const std::string& name, const ModelVersion& version,
                             const std::string& to) {
  std::string target = to;
  while (target.size() > 1 && target.ends_with('/')) target.pop_back();
  if (const auto there = stores_.Expand(target + "/"); there.ok() && !there->empty())
    return AlreadyExists(to + " is not empty; name a new directory");
  return CopyVersion(name, version, target);
}

}  // namespace shoal::serving
