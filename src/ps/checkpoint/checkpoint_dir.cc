#include "ps/checkpoint/checkpoint_dir.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <system_error>

#include "base/bytes.h"
#include "base/fault_injection.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "ps/checkpoint/checkpoint_file.h"

namespace shoal::ps {
namespace {

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kManifest = "manifest.json";
constexpr size_t kMaxManifestBytes = 16u << 20;
constexpr size_t kMaxFiles = 65536;
constexpr int64_t kFormat = 2;  // 1, without bases and a checksum, is read too

constexpr size_t kMaxChain = 4096;
constexpr int64_t kMaxId = int64_t{1} << 53;  // what JSON holds exactly, and another is above it

// Keeps nothing but the head: reading it through is the check.
class CheckingVisitor final : public CheckpointVisitor {
 public:
  Status OnHead(const CheckpointHead& read) override {
    head = read;
    return Status::Ok();
  }
  Status OnTable(const TableSpec&) override { return Status::Ok(); }
  Status OnRows(const TableSpec&, size_t, std::span<const Key>, std::span<const float>) override {
    return Status::Ok();
  }
  Status OnProgress(int, std::string_view) override { return Status::Ok(); }
  Status OnBlob(std::string_view, uint64_t, uint64_t, std::string_view) override {
    return Status::Ok();
  }
  CheckpointHead head;
};

std::filesystem::path PathOf(const std::filesystem::path& root, const ChainLink& connection) {
  return CheckpointPath(root, connection.checkpoint) / connection.file.name;
}

Status CheckSize(const std::filesystem::path& root, const ChainLink& connection) {
  std::error_code error;
  const auto path = PathOf(root, connection);
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size == connection.file.bytes) return Status::Ok();
  if (error && error != std::errc::no_such_file_or_directory) {
    return ErrnoStatus(error.value(), "cannot read " + path.string());
  }
  return DataLoss(fmt::format("{}: {}, expected {} bytes", path.string(),
                              error ? error.message() : fmt::format("{} bytes", size),
                              connection.file.bytes));
}

// Whether an error says that a checkpoint is damaged or incomplete. Any other (EIO, EACCES, no
// memory, a later version of the format) says only that it could not be read now and here.
bool IsDamage(const Status& status) {
  return status.code() == Code::kDataLoss || status.code() == Code::kNotFound;
}

// Which files have been found whole or not: many checkpoints stand on one.
class Checker {
 public:
  explicit Checker(std::filesystem::path root) : root_(std::move(root)) {}

  Status Check(const Manifest& manifest) {
    for (const CheckpointFile& file : manifest.files) {
      TRY_ASSIGN(const auto chain, ChainOf(root_, manifest.checkpoint, file));
      uint32_t base_crc = 0;
      for (const ChainLink& connection : chain) {
        TRY(CheckFile(connection, base_crc));
        base_crc = connection.file.crc;
      }
    }
    return Status::Ok();
  }

 private:
  Status CheckFile(const ChainLink& connection, uint32_t base_crc) {
    const auto path = PathOf(root_, connection);
    auto found = known_.find(path.string());
    if (found == known_.end()) {
      found = known_.emplace(path.string(), Read(path, connection, base_crc)).first;
    }
    return found->second;
  }

  static Status Read(const std::filesystem::path& path, const ChainLink& connection,
                     uint32_t base_crc) {
    CheckingVisitor visitor;
    uint32_t crc = 0;
    TRY(ReadCheckpoint(path, connection.checkpoint, &visitor, &crc));
    if (crc != connection.file.crc) {
      return DataLoss(fmt::format("{}: its checksum is {:08x}, its manifest says {:08x}",
                                  path.string(), crc, connection.file.crc));
    }
    if (visitor.head.base != connection.file.base ||
        (connection.file.base >= 0 && visitor.head.base_crc != base_crc)) {
      return DataLoss(
          fmt::format("{}: it does not continue the file of checkpoint {} that is there",
                      path.string(), connection.file.base));
    }
    return Status::Ok();
  }

  const std::filesystem::path root_;
  std::map<std::string, Status> known_;
};

Result<bool> IsCommitted(const std::filesystem::path& root, int64_t id) {
  std::error_code error;
  const auto path = CheckpointPath(root, id) / kManifest;
  const bool there = std::filesystem::exists(path, error);
  if (error) return ErrnoStatus(error.value(), "cannot read " + path.string());
  return there;
}

void Remove(const std::filesystem::path& root, int64_t id) {
  const auto directory = CheckpointPath(root, id);
  std::error_code error;
  // The manifest goes first: what is half-removed is not committed.
  std::filesystem::remove(directory / kManifest, error);
  std::filesystem::remove_all(directory, error);
  if (error) LogWarning("cannot remove {}: {}", directory.string(), error.message());
}

// The checkpoints that one stands on, with itself.
std::set<int64_t> FoundationOf(const std::filesystem::path& root, int64_t id) {
  std::set<int64_t> ids = {id};
  const auto manifest = ReadManifest(root, id);
  if (!manifest.ok()) return ids;
  for (const CheckpointFile& file : manifest->files) {
    const auto chain = ChainOf(root, id, file);
    if (!chain.ok()) continue;
    for (const ChainLink& connection : *chain) ids.insert(connection.checkpoint);
  }
  return ids;
}

bool Overlap(const std::set<int64_t>& a, const std::set<int64_t>& b) {
  return std::any_of(a.begin(), a.end(), [&](int64_t id) { return b.contains(id); });
}

void Prune(const std::filesystem::path& root, int64_t newest, const Retention& retention) {
  const auto listed = ListCheckpoints(root);
  if (!listed.ok()) return LogWarning("old checkpoints stay: {}", listed.status().message());
  const std::vector<int64_t>& ids = *listed;
  const auto keep = static_cast<size_t>(std::max(retention.keep, 1));
  std::set<int64_t> stay, first;
  size_t kept = 0;
  bool apart = keep < 2;  // two that share no file are among those that stay
  for (auto at = ids.rbegin(); at != ids.rend() && (kept < keep || !apart); ++at) {
    const auto committed = IsCommitted(root, *at);
    if (!committed.ok()) {
      return LogWarning("old checkpoints stay: {}", committed.status().message());
    }
    if (*at > newest || retention.damaged.contains(*at) || !*committed) continue;
    const auto foundation = FoundationOf(root, *at);
    if (kept == 0) first = foundation;
    const bool alone = kept > 0 && !Overlap(first, foundation);
    if (kept >= keep && !alone) continue;
    apart = apart || alone;
    ++kept;
    stay.insert(foundation.begin(), foundation.end());
  }
  for (const int64_t id : ids) {
    if (id <= newest && !stay.contains(id)) Remove(root, id);
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
  if (object.contains("base")) {
    TRY_ASSIGN(file.base, GetInt(object, "base"));
    if (file.base < 0) return InvalidArgument("files: base: expected 0 or more");
  }
  file.bytes = static_cast<uint64_t>(bytes);
  file.crc = static_cast<uint32_t>(crc);
  return file;
}

// Of all fields but itself, in the order that they stand in.
uint32_t SumCheckpoint(json::object object) {
  object.erase("crc32c");
  const std::string text = ToText(object);
  return Crc32c(text.data(), text.size());
}

}  // namespace

std::filesystem::path CheckpointPath(const std::filesystem::path& root, int64_t id) {
  return root / fmt::format("{}{}", kPrefix, id);
}

std::string CheckpointFileName(int server) { return fmt::format("server-{}.ckpt", server); }

Result<std::vector<int64_t>> ListCheckpoints(const std::filesystem::path& root) {
  std::vector<int64_t> ids;
  std::error_code error;
  TRY(FaultPoint("ps.checkpoint.list").With(root.string()));
  for (auto at = std::filesystem::directory_iterator(root, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int64_t id = -1;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, id);
    if (parsed.ec == std::errc() && parsed.ptr == end && id >= 0 && id <= kMaxId) ids.push_back(id);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return ErrnoStatus(error.value(), "cannot read " + root.string());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string EncodeManifest(const Manifest& manifest) {
  json::array files;
  for (const CheckpointFile& file : manifest.files) {
    json::object object = {{"name", file.name}, {"bytes", file.bytes}, {"crc32c", file.crc}};
    if (file.base >= 0) object["base"] = file.base;
    files.push_back(std::move(object));
  }
  json::array workers;
  for (const int worker : manifest.workers) workers.push_back(worker);
  json::object object = {{"format", kFormat},
                         {"checkpoint", manifest.checkpoint},
                         {"files", std::move(files)},
                         {"workers", std::move(workers)}};
  object["crc32c"] = SumCheckpoint(object);
  return ToPrettyText(object);
}

Result<Manifest> DecodeManifest(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  TRY_ASSIGN(const int64_t format, GetInt(object, "format"));
  if (format < 1) return InvalidArgument(fmt::format("format: got {}", format));
  if (format > 1 || object.contains("crc32c")) {
    TRY_ASSIGN(const int64_t sum, GetInt(object, "crc32c"));
    if (sum != int64_t{SumCheckpoint(object)}) return InvalidArgument("crc32c: it does not match");
  }
  // The checksum is the same in all formats, so this is no damaged byte.
  if (format > kFormat) {
    return Unimplemented(fmt::format(
        "format: got {}, this program reads 1 to {}: start a newer one, or move the checkpoint "
        "away",
        format, kFormat));
  }
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
  TRY_ASSIGN(const bool committed, IsCommitted(root, id));
  if (!committed) {
    return NotFound(fmt::format("{} is not committed", CheckpointPath(root, id).string()));
  }
  TRY(FaultPoint("ps.checkpoint.manifest").With(path.string()));
  TRY_ASSIGN(const std::string text, ReadFile(path, kMaxManifestBytes));
  auto manifest = DecodeManifest(text);
  if (manifest.status().code() == Code::kUnimplemented)
    return manifest.status().With(path.string());
  if (!manifest.ok()) return DataLoss(manifest.status().message()).With(path.string());
  if (manifest->checkpoint != id) {
    return DataLoss(fmt::format("{}: it is of checkpoint {}", path.string(), manifest->checkpoint));
  }
  return manifest;
}

Result<std::vector<ChainLink>> ChainOf(const std::filesystem::path& root, int64_t checkpoint,
                                       const CheckpointFile& file) {
  std::vector<ChainLink> chain = {{checkpoint, file}};
  TRY(CheckSize(root, chain.back()));
  while (chain.back().file.base >= 0) {
    const ChainLink at = chain.back();
    if (at.file.base >= at.checkpoint || chain.size() == kMaxChain) {
      return DataLoss(fmt::format("{}: it continues checkpoint {}, expected an earlier one",
                                  PathOf(root, at).string(), at.file.base));
    }
    TRY_ASSIGN(const Manifest manifest, ReadManifest(root, at.file.base));
    const auto found = std::find_if(manifest.files.begin(), manifest.files.end(),
                                    [&](const auto& other) { return other.name == file.name; });
    if (found == manifest.files.end()) {
      return DataLoss(fmt::format("{}: checkpoint {}, which it continues, has no such file",
                                  PathOf(root, at).string(), at.file.base));
    }
    chain.push_back({manifest.checkpoint, *found});
    TRY(CheckSize(root, chain.back()));
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

Status CommitManifest(const std::filesystem::path& root, const Manifest& manifest,
                      const Retention& retention) {
  const auto directory = CheckpointPath(root, manifest.checkpoint);
  for (const CheckpointFile& file : manifest.files) {
    const auto chain = ChainOf(root, manifest.checkpoint, file);
    if (!chain.ok()) {
      return FailedPrecondition(fmt::format(
          "{}; is the checkpoint directory shared by all servers?", chain.status().message()));
    }
  }
  TRY(WriteFileAtomically(directory / kManifest, EncodeManifest(manifest), 0600));
  TRY(SyncDirectory(root));
  Prune(root, manifest.checkpoint, retention);
  return Status::Ok();
}

void RemoveUncommitted(const std::filesystem::path& root, int64_t id) {
  const auto committed = IsCommitted(root, id);
  if (committed.ok() && !*committed) Remove(root, id);
}

Result<Manifest> NewestIntact(const std::filesystem::path& root, std::set<int64_t>* damaged) {
  TRY_ASSIGN(const std::vector<int64_t> ids, ListCheckpoints(root));
  Checker checker(root);
  Status newest = NotFound(fmt::format("{}: no checkpoint was committed", root.string()));
  for (auto at = ids.rbegin(); at != ids.rend(); ++at) {
    auto manifest = ReadManifest(root, *at);
    if (manifest.status().code() == Code::kNotFound) continue;
    const Status whole = manifest.ok() ? checker.Check(*manifest) : manifest.status();
    if (whole.ok()) return manifest;
    // A server that skipped a checkpoint which is only unreadable for now would go back in time
    // alone.
    if (!IsDamage(whole)) return whole.With(fmt::format("checkpoint {} cannot be read", *at));
    LogWarning("checkpoint {} is damaged and not used: {}", *at, whole.message());
    if (damaged != nullptr) damaged->insert(*at);
    if (newest.code() == Code::kNotFound) newest = DataLoss(whole.message());
  }
  return newest;
}

Result<Manifest> ReadIntactCheckpoint(const std::filesystem::path& root, int64_t id) {
  TRY_ASSIGN(Manifest manifest, ReadManifest(root, id));
  TRY(Checker(root).Check(manifest));
  return manifest;
}

Status ReadAll(const std::filesystem::path& root, const Manifest& manifest,
               CheckpointVisitor* visitor) {
  for (const CheckpointFile& file : manifest.files) {
    TRY_ASSIGN(const auto chain, ChainOf(root, manifest.checkpoint, file));
    for (const ChainLink& connection : chain) {
      TRY(ReadCheckpoint(PathOf(root, connection), connection.checkpoint, visitor));
    }
  }
  return Status::Ok();
}

}  // namespace shoal::ps
