#include "ps/checkpoint_dir.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "ps/checkpoint_file.h"

namespace shoal::ps {
namespace {

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kManifest = "manifest.json";
constexpr size_t kMaxManifestBytes = 16u << 20;
constexpr size_t kMaxFiles = 65536;

// Believes nothing and keeps nothing: reading it through is the check.
class NullVisitor final : public CheckpointVisitor {
 public:
  Status OnTable(const TableSpec&) override { return Status::Ok(); }
  Status OnRows(const TableSpec&, size_t, std::span<const Key>, std::span<const float>) override {
    return Status::Ok();
  }
  Status OnProgress(int, std::string_view) override { return Status::Ok(); }
  Status OnBlob(std::string_view, uint64_t, uint64_t, std::string_view) override {
    return Status::Ok();
  }
};

Status CheckWhole(const std::filesystem::path& root, const Manifest& manifest) {
  const auto directory = CheckpointPath(root, manifest.checkpoint);
  for (const CheckpointFile& file : manifest.files) {
    std::error_code error;
    const auto size = std::filesystem::file_size(directory / file.name, error);
    if (error || size != file.bytes) {
      return DataLoss(fmt::format("{}: {}, expected {} bytes", (directory / file.name).string(),
                                  error ? error.message() : fmt::format("{} bytes", size),
                                  file.bytes));
    }
    NullVisitor visitor;
    TRY(ReadCheckpoint(directory / file.name, manifest.checkpoint, &visitor));
  }
  return Status::Ok();
}

bool IsCommitted(const std::filesystem::path& root, int64_t id) {
  std::error_code error;
  return std::filesystem::exists(CheckpointPath(root, id) / kManifest, error);
}

void Remove(const std::filesystem::path& root, int64_t id) {
  const auto directory = CheckpointPath(root, id);
  std::error_code error;
  // The manifest goes first: what is half-removed is not committed.
  std::filesystem::remove(directory / kManifest, error);
  std::filesystem::remove_all(directory, error);
  if (error) LogWarning("cannot remove {}: {}", directory.string(), error.message());
}

void Prune(const std::filesystem::path& root, int64_t newest, int keep) {
  const std::vector<int64_t> ids = ListCheckpoints(root);
  int kept = 0;
  for (auto at = ids.rbegin(); at != ids.rend(); ++at) {
    if (*at > newest) continue;
    if (IsCommitted(root, *at) && kept < std::max(keep, 1)) {
      ++kept;
    } else {
      Remove(root, *at);
    }
  }
}

Result<CheckpointFile> DecodeFile(const json::value& value) {
  if (!value.is_object()) return InvalidArgument("files: expected objects");
  const json::object& object = value.as_object();
  CheckpointFile file;
  TRY_ASSIGN(file.name, GetString(object, "name"));
  TRY_ASSIGN(const int64_t bytes, GetInt(object, "bytes"));
  TRY_ASSIGN(const int64_t crc, GetInt(object, "crc32c"));
  if (file.name.empty() || file.name.find('/') != std::string::npos || file.name == ".." ||
      bytes < 0 || crc < 0 || crc > int64_t{UINT32_MAX}) {
    return InvalidArgument(fmt::format("files: '{}' is out of bounds", file.name));
  }
  file.bytes = static_cast<uint64_t>(bytes);
  file.crc = static_cast<uint32_t>(crc);
  return file;
}

}  // namespace

std::filesystem::path CheckpointPath(const std::filesystem::path& root, int64_t id) {
  return root / fmt::format("{}{}", kPrefix, id);
}

std::string CheckpointFileName(int server) { return fmt::format("server-{}.ckpt", server); }

std::vector<int64_t> ListCheckpoints(const std::filesystem::path& root) {
  std::vector<int64_t> ids;
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator(root, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int64_t id = -1;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, id);
    if (parsed.ec == std::errc() && parsed.ptr == end && id >= 0) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string EncodeManifest(const Manifest& manifest) {
  json::array files;
  for (const CheckpointFile& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"crc32c", file.crc}});
  }
  json::array workers;
  for (const int worker : manifest.workers) workers.push_back(worker);
  return ToPrettyText(json::object{{"format", 1},
                                   {"checkpoint", manifest.checkpoint},
                                   {"files", std::move(files)},
                                   {"workers", std::move(workers)}});
}

Result<Manifest> DecodeManifest(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  TRY_ASSIGN(const int64_t format, GetInt(object, "format"));
  if (format != 1) return InvalidArgument(fmt::format("format: got {}, expected 1", format));
  Manifest manifest;
  TRY_ASSIGN(manifest.checkpoint, GetInt(object, "checkpoint"));
  const json::value* files = object.if_contains("files");
  if (files == nullptr || !files->is_array() || files->as_array().empty() ||
      files->as_array().size() > kMaxFiles) {
    return InvalidArgument("files: expected an array of one or more");
  }
  for (const json::value& value : files->as_array()) {
    TRY_ASSIGN(auto file, DecodeFile(value));
    manifest.files.push_back(std::move(file));
  }
  if (const json::value* workers = object.if_contains("workers");
      workers != nullptr && workers->is_array()) {
    for (const json::value& worker : workers->as_array()) {
      if (worker.is_int64()) manifest.workers.push_back(static_cast<int>(worker.as_int64()));
    }
  }
  return manifest;
}

Result<Manifest> ReadManifest(const std::filesystem::path& root, int64_t id) {
  const auto path = CheckpointPath(root, id) / kManifest;
  if (!IsCommitted(root, id)) {
    return NotFound(fmt::format("{} is not committed", CheckpointPath(root, id).string()));
  }
  TRY_ASSIGN(const std::string text, ReadFile(path, kMaxManifestBytes));
  auto manifest = DecodeManifest(text);
  if (!manifest.ok()) return DataLoss(manifest.status().message()).With(path.string());
  if (manifest->checkpoint != id) {
    return DataLoss(fmt::format("{}: it is of checkpoint {}", path.string(), manifest->checkpoint));
  }
  return manifest;
}

Status CommitManifest(const std::filesystem::path& root, const Manifest& manifest, int keep) {
  const auto directory = CheckpointPath(root, manifest.checkpoint);
  for (const CheckpointFile& file : manifest.files) {
    std::error_code error;
    const auto size = std::filesystem::file_size(directory / file.name, error);
    if (error || size != file.bytes) {
      return FailedPrecondition(
          fmt::format("{}: expected {} bytes there; is the checkpoint directory shared by all "
                      "servers?",
                      (directory / file.name).string(), file.bytes));
    }
  }
  TRY(WriteFileAtomically(directory / kManifest, EncodeManifest(manifest), 0600));
  TRY(SyncDirectory(root));
  Prune(root, manifest.checkpoint, keep);
  return Status::Ok();
}

void RemoveUncommitted(const std::filesystem::path& root, int64_t id) {
  if (!IsCommitted(root, id)) Remove(root, id);
}

Result<Manifest> NewestWhole(const std::filesystem::path& root) {
  const std::vector<int64_t> ids = ListCheckpoints(root);
  Status newest = NotFound(fmt::format("{}: no checkpoint was committed", root.string()));
  for (auto at = ids.rbegin(); at != ids.rend(); ++at) {
    auto manifest = ReadManifest(root, *at);
    if (manifest.status().code() == Code::kNotFound) continue;
    const Status whole = manifest.ok() ? CheckWhole(root, *manifest) : manifest.status();
    if (whole.ok()) return manifest;
    LogWarning("checkpoint {} is not used: {}", *at, whole.message());
    if (newest.code() == Code::kNotFound) newest = DataLoss(whole.message());
  }
  return newest;
}

}  // namespace shoal::ps
