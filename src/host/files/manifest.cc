#include "host/files/manifest.h"

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/utf8.h"

namespace shoal::host {
namespace {

constexpr int64_t kVersion = 1;

bool IsSha256(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Status CheckText(std::string_view text) {
  if (text.empty()) return InvalidArgument("it is empty");
  if (text.size() > kMaxShippedPath)
    return InvalidArgument("it is longer than " + std::to_string(kMaxShippedPath) + " bytes");
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text.substr(at));
    if (length == 0) return InvalidArgument("it is not valid UTF-8");
    const unsigned char c = static_cast<unsigned char>(text[at]);
    if (c < 0x20 || c == 0x7f) return InvalidArgument("it has a control character");
    at += length;
  }
  return Status::Ok();
}

std::vector<std::string_view> Parts(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<ManifestEntry> ReadEntry(const json::object& object) {
  ManifestEntry entry;
  TRY_ASSIGN(entry.path, GetString(object, "path"));
  TRY(CheckShippedPath(entry.path));
  TRY_ASSIGN(const std::string kind, GetString(object, "kind"));
  if (kind == "dir") {
    entry.kind = ManifestEntry::Kind::kDirectory;
  } else if (kind == "link") {
    entry.kind = ManifestEntry::Kind::kLink;
    TRY_ASSIGN(entry.target, GetString(object, "target"));
    TRY(CheckLinkTarget(entry.path, entry.target).With("its target"));
  } else if (kind == "file") {
    TRY_ASSIGN(entry.size, GetInt(object, "size"));
    TRY_ASSIGN(entry.sha256, GetString(object, "sha256"));
    entry.executable = GetBoolOr(object, "executable", false);
    if (entry.size < 0 || entry.size > kMaxShippedBytes)
      return InvalidArgument("field 'size' is out of its range");
    if (!IsSha256(entry.sha256))
      return InvalidArgument("field 'sha256': expected 64 lower-case hex digits");
  } else {
    return InvalidArgument("field 'kind': expected file, dir or link");
  }
  return entry;
}

// Checks: sorted, no duplicates, each parent directory is listed, equal hashes have equal
// sizes.
Status CheckOrder(const Manifest& manifest) {
  std::map<std::string_view, ManifestEntry::Kind> seen;
  std::map<std::string_view, int64_t> sizes;
  int64_t bytes = 0;
  const std::string* before = nullptr;
  for (const ManifestEntry& entry : manifest.entries) {
    const auto wrong = [&](const std::string& what) {
      return InvalidArgument("'" + entry.path + "': " + what);
    };
    if (before != nullptr && *before >= entry.path)
      return wrong("the entries are not in ascending order");
    before = &entry.path;
    const size_t slash = entry.path.rfind('/');
    if (slash != std::string::npos) {
      const auto parent = seen.find(std::string_view(entry.path).substr(0, slash));
      if (parent == seen.end() || parent->second != ManifestEntry::Kind::kDirectory)
        return wrong("its directory is not listed before it");
    }
    seen.emplace(entry.path, entry.kind);
    if (entry.kind != ManifestEntry::Kind::kFile) continue;
    if (!sizes.emplace(entry.sha256, entry.size).second && sizes[entry.sha256] != entry.size)
      return wrong("the same content has two sizes");
    bytes += entry.size;
    if (bytes > kMaxShippedBytes) return wrong("the files are larger than what may be shipped");
  }
  return Status::Ok();
}

}  // namespace

int64_t Manifest::bytes() const {
  int64_t sum = 0;
  for (const ManifestEntry& entry : entries) sum += entry.size;
  return sum;
}

Status CheckShippedPath(std::string_view path) {
  TRY(CheckText(path));
  const std::vector<std::string_view> parts = Parts(path);
  if (static_cast<int>(parts.size()) > kMaxShippedDepth)
    return InvalidArgument("it is deeper than " + std::to_string(kMaxShippedDepth) +
                           " directories");
  for (const std::string_view part : parts) {
    if (part.empty() || part == "." || part == "..")
      return InvalidArgument("it is not a plain path below the directory");
    if (part.size() > 255) return InvalidArgument("a part of it is longer than 255 bytes");
  }
  return Status::Ok();
}

// ".." after a name could leave through another link; at the beginning it is resolved in real
// directories.
Status CheckLinkTarget(std::string_view path, std::string_view target) {
  TRY(CheckText(target));
  int above = static_cast<int>(std::count(path.begin(), path.end(), '/'));
  bool named = false;
  for (const std::string_view part : Parts(target)) {
    if (part == ".." && (named || --above < 0))
      return InvalidArgument("it leads out of the directory");
    if (part.empty() || (part == "." && target != "."))
      return InvalidArgument("it is not a plain relative path");
    named = named || part != "..";
  }
  return Status::Ok();
}

std::string ToText(const Manifest& manifest) {
  json::array entries;
  entries.reserve(manifest.entries.size());
  for (const ManifestEntry& entry : manifest.entries) {
    json::object object{{"path", entry.path}};
    if (entry.kind == ManifestEntry::Kind::kDirectory) {
      object["kind"] = "dir";
    } else if (entry.kind == ManifestEntry::Kind::kLink) {
      object["kind"] = "link";
      object["target"] = entry.target;
    } else {
      object["kind"] = "file";
      object["size"] = entry.size;
      object["sha256"] = entry.sha256;
      if (entry.executable) object["executable"] = true;
    }
    entries.push_back(std::move(object));
  }
  return shoal::ToText(json::object{{"version", kVersion}, {"entries", std::move(entries)}});
}

Result<Manifest> ParseManifest(std::string_view text) {
  if (text.size() > kMaxManifestBytes) return ResourceExhausted("the list of files is too long");
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  TRY_ASSIGN(const int64_t version, GetInt(object, "version"));
  if (version != kVersion)
    return InvalidArgument("field 'version': got " + std::to_string(version) +
                           ", expected 1; use the shoal that wrote it");
  const json::value* list = object.if_contains("entries");
  if (list == nullptr || !list->is_array())
    return InvalidArgument("field 'entries': expected an array");
  if (list->get_array().size() > kMaxManifestEntries)
    return InvalidArgument("field 'entries': too many");
  Manifest manifest;
  for (const json::value& one : list->get_array()) {
    if (!one.is_object()) return InvalidArgument("field 'entries': expected objects");
    auto entry = ReadEntry(one.get_object());
    if (!entry.ok()) return entry.status().With("entry " + std::to_string(manifest.entries.size()));
    manifest.entries.push_back(std::move(*entry));
  }
  TRY(CheckOrder(manifest));
  return manifest;
}

}  // namespace shoal::host
