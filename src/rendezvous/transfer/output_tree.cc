#include "rendezvous/transfer/output_tree.h"

#include <algorithm>

#include "base/file.h"
#include "host/files/manifest.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;
using Kind = OutputEntry::Kind;

constexpr const char* kKinds[] = {"file", "dir", "link"};

// One entry; its path is set. False for entries that cannot be sent.
bool Describe(const fs::directory_entry& there, OutputEntry* entry) {
  if (!host::CheckShippedPath(entry->path).ok()) return false;
  std::error_code error;
  const fs::file_status status = there.symlink_status(error);
  if (error) return false;
  if (status.type() == fs::file_type::directory) {
    entry->kind = Kind::kDirectory;
    return true;
  }
  if (status.type() == fs::file_type::symlink) {
    entry->kind = Kind::kLink;
    entry->target = fs::read_symlink(there.path(), error).string();
    return !error && host::CheckLinkTarget(entry->path, entry->target).ok();
  }
  entry->executable = (status.permissions() & fs::perms::owner_exec) != fs::perms::none;
  entry->size = static_cast<int64_t>(there.file_size(error));
  return !error && status.type() == fs::file_type::regular;
}

}  // namespace

json::object ToJson(const OutputEntry& entry) {
  json::object object{{"path", entry.path}, {"kind", kKinds[static_cast<int>(entry.kind)]}};
  if (entry.kind == Kind::kFile) {
    object["size"] = entry.size;
    object["executable"] = entry.executable;
  }
  if (entry.kind == Kind::kLink) object["target"] = entry.target;
  return object;
}

Result<OutputEntry> OutputEntryFromJson(const json::object& object) {
  OutputEntry entry;
  TRY_ASSIGN(entry.path, GetString(object, "path"));
  TRY(host::CheckShippedPath(entry.path));
  TRY_ASSIGN(const std::string kind, GetString(object, "kind"));
  const auto known = std::find(std::begin(kKinds), std::end(kKinds), kind);
  if (known == std::end(kKinds)) {
    return InvalidArgument("field 'kind': got '" + kind + "', expected file, dir or link");
  }
  entry.kind = static_cast<Kind>(known - std::begin(kKinds));
  if (entry.kind == Kind::kFile) {
    TRY_ASSIGN(entry.size, GetInt(object, "size"));
    TRY_ASSIGN(entry.executable, GetBool(object, "executable"));
    if (entry.size < 0) return InvalidArgument("field 'size' is negative");
  } else if (entry.kind == Kind::kLink) {
    TRY_ASSIGN(entry.target, GetString(object, "target"));
    TRY(host::CheckLinkTarget(entry.path, entry.target));
  }
  return entry;
}

Result<OutputTree> ListOutputTree(const fs::path& directory) {
  OutputTree tree;
  std::error_code error;
  if (!fs::is_directory(directory, error)) return tree;
  int64_t bytes = 0;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    OutputEntry entry;
    entry.path = it->path().lexically_relative(directory).string();
    if (!Describe(*it, &entry)) {
      it.disable_recursion_pending();
      tree.left_out.push_back(entry.path);
      continue;
    }
    bytes += entry.size;
    tree.entries.push_back(std::move(entry));
    if (tree.entries.size() > kMaxOutputEntries || bytes > kMaxOutputBytes) {
      return ResourceExhausted(
          directory.string() + " holds more than " + std::to_string(kMaxOutputEntries) +
          " files or " + std::to_string(kMaxOutputBytes >> 30) +
          " GiB; write less to $SHOAL_OUTPUT, or to a place that all hosts see");
    }
  }
  if (error) return ErrnoStatus(error.value(), "cannot read " + directory.string());
  std::sort(tree.entries.begin(), tree.entries.end(),
            [](const OutputEntry& a, const OutputEntry& b) { return a.path < b.path; });
  return tree;
}

}  // namespace shoal::rendezvous
