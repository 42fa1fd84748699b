#include "serving/registry/model_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/utf8.h"

namespace shoal::serving {
namespace {

constexpr size_t kMaxName = 64;
constexpr size_t kDigestLength = 64;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
bool IsInnerByte(char c) { return IsNameByte(c) || c == '.' || c == '_' || c == '-'; }

bool IsHex(std::string_view text, size_t length) {
  return text.size() == length && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Status Malformed(std::string_view what) {
  return DataLoss(fmt::format("an entry of the registry {}", what));
}

// A path below a folder that cannot lead out of it.
bool IsSafePath(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.size() > 1000) return false;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string_view::npos ||
        part.find('\n') != std::string_view::npos)
      return false;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return true;
}

Result<VersionFile> FileOf(const json::value& value) {
  if (!value.is_object()) return Malformed("has a file that is no object");
  const json::object& object = value.get_object();
  VersionFile file;
  file.name = GetStringOr(object, "name", "");
  file.sha256 = GetStringOr(object, "sha256", "");
  const int64_t bytes = GetIntOr(object, "bytes", -1);
  if (!IsSafePath(file.name) || !IsHex(file.sha256, kDigestLength) || bytes < 0)
    return Malformed("has a file without name, length or digest");
  file.bytes = static_cast<uint64_t>(bytes);
  return file;
}

Status CheckBytes(std::string_view what, std::string_view name) {
  const bool good = !name.empty() && name.size() <= kMaxName && IsNameByte(name.front()) &&
                    std::all_of(name.begin(), name.end(), IsInnerByte);
  if (good) return Status::Ok();
  return InvalidArgument(EscapedUtf8(fmt::format(
      "{}: got '{}', expected at most {} letters, digits, '.', '_' and '-', the first a letter or "
      "digit",
      what, name.substr(0, 2 * kMaxName), kMaxName)));
}

bool IsDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

uint64_t ModelVersion::bytes() const {
  uint64_t sum = 0;
  for (const VersionFile& file : files) sum += file.bytes;
  return sum;
}

Status ModelHistory::Apply(const json::object& entry) {
  const std::string op = GetStringOr(entry, "op", "");
  if (op == "add") {
    TRY(ApplyAdd(entry));
  } else if (op == "tag" || op == "untag" || op == "rollback") {
    TRY(ApplyTag(entry));
  } else if (op == "delete") {
    TRY(ApplyDelete(entry));
  } else {
    return Malformed(fmt::format(
        "has the operation '{}', which this release does not know; use the release that wrote it",
        EscapedUtf8(op.substr(0, kMaxName))));
  }
  ++entries_;
  return Status::Ok();
}

Status ModelHistory::ApplyAdd(const json::object& entry) {
  ModelVersion version;
  version.number = versions_.size() + 1;
  if (GetIntOr(entry, "version", 0) != static_cast<int64_t>(version.number))
    return Malformed("adds a version out of order");
  version.created = GetStringOr(entry, "created", "");
  version.by = GetStringOr(entry, "by", "");
  version.job = GetStringOr(entry, "job", "");
  version.source = GetStringOr(entry, "source", "");
  version.folder = GetStringOr(entry, "folder", "");
  version.digest = GetStringOr(entry, "digest", "");
  if (CheckBytes("folder", version.folder).code() != Code::kOk) return Malformed("has no folder");
  const json::value* const files = entry.if_contains("files");
  if (files == nullptr || !files->is_array() || files->get_array().empty() ||
      files->get_array().size() > kMaxVersionFiles)
    return Malformed("has no files");
  for (const json::value& one : files->get_array()) {
    TRY_ASSIGN(VersionFile file, FileOf(one));
    version.files.push_back(std::move(file));
  }
  if (const json::object* const metadata = FindObject(entry, "metadata"); metadata != nullptr)
    version.metadata = *metadata;
  versions_.push_back(std::move(version));
  return Status::Ok();
}

Status ModelHistory::ApplyTag(const json::object& entry) {
  const std::string tag = GetStringOr(entry, "tag", "");
  const std::string op = GetStringOr(entry, "op", "");
  if (!CheckTag(tag).ok()) return Malformed("has no tag");
  std::vector<uint64_t>& named = tags_[tag];
  if (op == "untag") {
    named.clear();
  } else if (op == "rollback") {
    if (named.empty()) return Malformed("rolls back a tag that names nothing");
    named.pop_back();
  } else {
    const int64_t number = GetIntOr(entry, "version", 0);
    if (number < 1 || !Lives(static_cast<uint64_t>(number)))
      return Malformed("tags a version that there is not");
    named.push_back(static_cast<uint64_t>(number));
  }
  return Status::Ok();
}

Status ModelHistory::ApplyDelete(const json::object& entry) {
  const int64_t number = GetIntOr(entry, "version", 0);
  if (number < 1 || !Lives(static_cast<uint64_t>(number)))
    return Malformed("deletes a version that there is not");
  versions_[static_cast<size_t>(number) - 1].deleted = true;
  // What a tag named before can be rolled back to no more.
  for (auto& [tag, named] : tags_) std::erase(named, static_cast<uint64_t>(number));
  return Status::Ok();
}

bool ModelHistory::Lives(uint64_t number) const {
  return number >= 1 && number <= versions_.size() && !versions_[number - 1].deleted;
}

Result<const ModelVersion*> ModelHistory::Find(uint64_t number) const {
  if (number < 1 || number > versions_.size())
    return NotFound(
        fmt::format("there is no version {}; the newest is {}", number, versions_.size()));
  if (versions_[number - 1].deleted) return NotFound(fmt::format("version {} was deleted", number));
  return &versions_[number - 1];
}

std::optional<uint64_t> ModelHistory::Tagged(std::string_view tag) const {
  const auto found = tags_.find(tag);
  if (found == tags_.end() || found->second.empty()) return std::nullopt;
  return found->second.back();
}

std::optional<uint64_t> ModelHistory::Before(std::string_view tag) const {
  const auto found = tags_.find(tag);
  if (found == tags_.end() || found->second.size() < 2) return std::nullopt;
  return found->second[found->second.size() - 2];
}

std::map<std::string, uint64_t> ModelHistory::tags() const {
  std::map<std::string, uint64_t> now;
  for (const auto& [tag, named] : tags_) {
    if (!named.empty()) now[tag] = named.back();
  }
  return now;
}

std::vector<std::string> ModelHistory::TagsOf(uint64_t number) const {
  std::vector<std::string> names;
  for (const auto& [tag, named] : tags()) {
    if (named == number) names.push_back(tag);
  }
  return names;
}

json::object EntryOf(const ModelVersion& version) {
  json::array files;
  for (const VersionFile& file : version.files)
    files.push_back(
        json::object{{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  return {{"op", "add"},
          {"version", version.number},
          {"created", version.created},
          {"by", version.by},
          {"job", version.job},
          {"source", version.source},
          {"folder", version.folder},
          {"digest", version.digest},
          {"files", std::move(files)},
          {"metadata", version.metadata}};
}

Status CheckModelName(std::string_view name) { return CheckBytes("model name", name); }

Status CheckTag(std::string_view tag) {
  TRY(CheckBytes("tag", tag));
  if (!IsDigits(tag)) return Status::Ok();
  return InvalidArgument(fmt::format(
      "tag: got {}, expected a name, since digits alone are the number of a version", tag));
}

std::string NameForPath(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  path.remove_prefix(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
  std::string name(path.substr(0, kMaxName));
  for (char& c : name) {
    if (!IsInnerByte(c)) c = '-';
  }
  while (!name.empty() && !IsNameByte(name.front())) name.erase(0, 1);
  return name.empty() ? "model" : name;
}

Result<ModelReference> ParseModelReference(std::string_view text) {
  const size_t at = std::min(text.find('@'), text.size());
  ModelReference reference{std::string(text.substr(0, at)), ""};
  TRY(CheckModelName(reference.name));
  if (at == text.size()) return reference;
  reference.version = text.substr(at + 1);
  if (!IsDigits(reference.version)) TRY(CheckTag(reference.version));
  return reference;
}

}  // namespace shoal::serving
