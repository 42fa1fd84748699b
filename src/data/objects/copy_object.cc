#include "data/objects/copy_object.h"

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/output_file.h"
#include "data/objects/read_ahead.h"

namespace shoal::data {
namespace {

namespace fs = std::filesystem;

// The key of an object may have such parts, the path of a file may not, and '..' leads elsewhere.
Status CheckParts(const std::string& uri, std::string_view name) {
  for (;;) {
    const size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..")
      return InvalidArgument(uri + ": its name has the part '" + std::string(part) +
                             "', expected one that a file can have; copy it by itself, to a name "
                             "of its own");
    if (slash == std::string_view::npos) return Status::Ok();
    name.remove_prefix(slash + 1);
  }
}

bool IsFolder(const std::string& source) {
  const auto uri = ParseObjectUri(source);
  return source.ends_with('/') ||
         (uri.ok() && uri->scheme == ObjectScheme::kS3 && uri->path.empty());
}

// Without the path of the folder that the source is, else the last part.
std::string NameBelow(const std::string& source, const std::string& uri) {
  const auto folder = ParseObjectUri(source);
  std::string above = folder.ok() ? folder->text() : source;
  if (!above.ends_with('/')) above += '/';
  const bool below = IsFolder(source) && uri.starts_with(above);
  return uri.substr(below ? above.size() : uri.rfind('/') + 1);
}

Status ReadAll(const std::shared_ptr<const Object>& object,
               const std::function<void(uint64_t)>& progress,
               const std::function<Status(std::string_view)>& take) {
  ReadAhead bytes(object, object->info().bytes, {.first_block = 1 << 20});
  std::vector<char> block(1 << 20);
  for (;;) {
    TRY_ASSIGN(const size_t got, bytes.Read(block.data(), block.size()));
    if (got == 0) return Status::Ok();
    TRY(take(std::string_view(block.data(), got)));
    if (progress) progress(got);
  }
}

// A new file has no permission that a source on this machine lacks.
Result<ObjectInfo> CopyToFile(const std::shared_ptr<const Object>& object, const std::string& to,
                              const std::function<void(uint64_t)>& progress) {
  TRY_ASSIGN(const ObjectUri place, ParseObjectUri(to));
  const fs::path path(place.path);
  if (path.has_parent_path()) TRY(MakeDirectories(path.parent_path()));
  TRY_ASSIGN(OutputWriter file, OutputWriter::Open(path));
  struct stat source {};
  const std::string& from = object->info().uri;
  if (!IsRemoteUri(from) && ::stat(from.c_str(), &source) == 0)
    TRY(file.LimitMode(source.st_mode & 0777));
  TRY(ReadAll(object, progress, [&](std::string_view bytes) { return file.Write(bytes); }));
  TRY(file.Commit());
  return ObjectInfo{place.path, object->info().bytes, "", ""};
}

}  // namespace

Result<std::vector<PlannedCopy>> PlanCopies(ObjectStores* stores,
                                            const std::vector<std::string>& sources,
                                            const std::string& target) {
  const bool local = !IsRemoteUri(target);
  TRY_ASSIGN(const ObjectUri place, ParseObjectUri(target));
  std::vector<PlannedCopy> copies;
  std::error_code error;
  bool folder = target.ends_with('/') || (local && fs::is_directory(place.path, error));
  for (const std::string& source : sources) {
    TRY_ASSIGN(const std::vector<ObjectInfo> found, stores->List(source));
    for (const ObjectInfo& one : found) copies.push_back({one, NameBelow(source, one.uri)});
    folder = folder || IsFolder(source);
  }
  folder = folder || copies.size() > 1;
  std::map<std::string_view, std::string_view> taken;  // place → its object
  for (PlannedCopy& copy : copies) {
    if (folder && local) TRY(CheckParts(copy.from.uri, copy.to));
    copy.to = folder ? target + (target.ends_with('/') ? "" : "/") + copy.to : target;
    const auto [other, fresh] = taken.emplace(copy.to, copy.from.uri);
    if (!fresh)
      return InvalidArgument(std::string(other->second) + " and " + copy.from.uri +
                             " would both be copied to " + copy.to +
                             "; copy them to folders of their own");
    const auto to = ParseObjectUri(copy.to);
    if (local && !IsRemoteUri(copy.from.uri) && to.ok() &&
        fs::equivalent(copy.from.uri, to->path, error))
      return InvalidArgument(copy.from.uri + " would be copied to itself");
  }
  return copies;
}

Result<ObjectInfo> CopyObject(ObjectStores* stores, const std::string& from, const std::string& to,
                              const std::function<void(uint64_t)>& progress) {
  TRY_ASSIGN(const auto object, stores->Open(from));
  if (!IsRemoteUri(to)) return CopyToFile(object, to, progress);
  TRY_ASSIGN(const auto writer, stores->Create(to));
  TRY(ReadAll(object, progress, [&](std::string_view bytes) { return writer->Append(bytes); }));
  return writer->Finish();
}

}  // namespace shoal::data
