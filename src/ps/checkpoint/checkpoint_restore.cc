// Restoring at the start: reads the rows that this server owns now from the newest intact
// checkpoint, whatever the number of servers that wrote it (docs/design/checkpoint.md).
#include <fmt/format.h>

#include <new>
#include <optional>
#include <set>

#include "base/log.h"
#include "ps/checkpoint/checkpoint_file.h"
#include "ps/checkpoint/checkpoint_service.h"
#include "ps/checkpoint/restore_point.h"
#include "ps/server/shard_service.h"
#include "ps/server/worker_service.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

// Server 0 reads all of a checkpoint before it can be asked.
constexpr Duration kLeaderWithin = std::chrono::minutes(10);

// Puts the rows, progress and blobs of all servers' files where they belong now.
class Restorer final : public CheckpointVisitor {
 public:
  struct Target {
    ServerContext* context;
    const ShardMap* map;
    BlobStore* blobs;
    WorkerService* workers;
  };
  explicit Restorer(Target target) : to_(target) {}

  Status OnHead(const CheckpointHead& head) override {
    if (head.base < 0) chain_blobs_.clear();
    return Status::Ok();
  }
  Status OnTable(const TableSpec& spec) override {
    for (auto& lane : to_.context->lanes) TRY(lane->CreateTable(spec));
    return Status::Ok();
  }
  Status OnRows(const TableSpec& spec, size_t floats, std::span<const Key> keys,
                std::span<const float> rows) override {
    const uint32_t id = TableIdOf(spec.name);
    for (size_t i = 0; i < keys.size(); ++i) {
      const Owner owner =
          to_.map->At(to_.context->partition.ShardOf(spec.key_space, keys[i])).owner;
      if (owner.server != to_.context->options.index) continue;
      to_.context->lane(owner.lane).FindTable(id)->RestoreRow(keys[i], rows.data() + i * floats);
    }
    return Status::Ok();
  }
  Status OnProgress(int worker, std::string_view bytes) override {
    to_.workers->SetProgress(worker, bytes);
    return Status::Ok();
  }
  Status OnBlob(std::string_view name, uint64_t total, uint64_t offset,
                std::string_view bytes) override {
    if (offset == 0) blob_.clear();
    if (offset != blob_.size()) return DataLoss("the pieces of a blob are out of order");
    blob_.append(bytes);
    if (blob_.size() < total) return Status::Ok();
    if (to_.context->options.index == kLeader) to_.blobs->Set(name, std::move(blob_));
    blob_.clear();
    chain_blobs_.emplace(name);
    return Status::Ok();
  }
  Status OnBlobNames(const std::set<std::string, std::less<>>& names) override {
    std::erase_if(chain_blobs_, [&](const std::string& name) {
      if (names.contains(name)) return false;
      to_.blobs->Delete(name);
      return true;
    });
    return Status::Ok();
  }

 private:
  Target to_;
  std::string blob_;
  std::set<std::string> chain_blobs_;  // what the file and those that it continues hold
};

// Collects the rows of some shards.
class RowCollector final : public CheckpointVisitor {
 public:
  RowCollector(const Partition& partition, const std::set<uint32_t>& shards)
      : partition_(partition), shards_(shards) {}
  std::vector<RestoredRows> Take() { return std::move(rows_); }

  Status OnTable(const TableSpec& /*spec*/) override { return Status::Ok(); }
  Status OnRows(const TableSpec& spec, size_t floats, std::span<const Key> keys,
                std::span<const float> rows) override {
    RestoredRows* some = nullptr;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (!shards_.contains(partition_.ShardOf(spec.key_space, keys[i]))) continue;
      if (some == nullptr) some = &rows_.emplace_back(RestoredRows{spec, {}, {}});
      some->keys.push_back(keys[i]);
      const float* const row = rows.data() + i * floats;
      some->values.insert(some->values.end(), row, row + floats);
    }
    return Status::Ok();
  }
  Status OnProgress(int /*worker*/, std::string_view /*bytes*/) override { return Status::Ok(); }
  Status OnBlob(std::string_view /*name*/, uint64_t /*total*/, uint64_t /*offset*/,
                std::string_view /*bytes*/) override {
    return Status::Ok();
  }

 private:
  const Partition& partition_;
  const std::set<uint32_t>& shards_;
  std::vector<RestoredRows> rows_;
};

// All servers read all files, so they find the same one whole; but what one of them cannot see, or
// finds damaged alone, must not part it from the others.
// Nothing: none.
Result<std::optional<Manifest>> ChooseCheckpoint(const ServerOptions& options,
                                                 std::set<int64_t>* damaged) {
  const auto& root = options.checkpoint_dir;
  auto newest = NewestIntact(root, damaged);
  const bool none = newest.status().code() == Code::kNotFound;
  if (!none) TRY(newest.status().With("no checkpoint can be restored"));
  // With replicas the servers start one by one, as replica groups; without Members none can be
  // asked.
  if (options.index != kLeader && options.members != nullptr && options.replicas == 1) {
    TRY_ASSIGN(const RestorePoint leader, AskRestorePoint(options, kLeaderWithin));
    const auto follow = FollowRestorePoint(leader, none ? -1 : newest->checkpoint);
    TRY(follow.status().With(root.string()));
    if (*follow < 0) return std::optional<Manifest>();
    if (none || *follow != newest->checkpoint) {
      newest = ReadIntactCheckpoint(root, *follow);
      TRY(newest.status().With(
          fmt::format("server 0 restored checkpoint {}, and so must all others", *follow)));
    }
  }
  if (!newest.ok()) return std::optional<Manifest>();
  return std::optional<Manifest>(std::move(*newest));
}

}  // namespace

Status CheckpointService::Open() {
  const ServerOptions& options = context_->options;
  if (options.checkpoint_dir.empty()) return Status::Ok();
  TRY(MakeDirectories(options.checkpoint_dir, 0700));
  // With replicas the replica group decides later which process restores, and another server may
  // have led before.
  if (options.replicas > 1) return Status::Ok();
  TRY(RestoreIfWanted());
  return context_->is_leader() ? ids_.Guard() : Status::Ok();
}

Status CheckpointService::RestoreIfWanted() {
  const ServerOptions& options = context_->options;
  return options.checkpoint_dir.empty() || !options.restore ? Status::Ok() : Restore();
}

Result<std::vector<RestoredRows>> CheckpointService::ReadRows(
    const std::set<uint32_t>& shards) const {
  if (restored_ < 0) return std::vector<RestoredRows>();
  const auto& root = context_->options.checkpoint_dir;
  Result<Manifest> manifest = ReadIntactCheckpoint(root, restored_);
  if (!manifest.ok()) manifest = NewestIntact(root);
  TRY(manifest.status());
  RowCollector collector(context_->partition, shards);
  TRY(ReadAll(root, *manifest, &collector));
  return collector.Take();
}

Status CheckpointService::Restore() {
  const ServerOptions& options = context_->options;
  const ShardMap map = shards_->Map();
  // A server that owns no shard joined later, or has given all of them away.
  if (!context_->is_leader() && !OwnersOf(map).contains(options.index)) return Status::Ok();
  TRY_ASSIGN(const std::optional<Manifest> chosen, ChooseCheckpoint(options, &damaged_));
  if (!chosen.has_value()) return Status::Ok();
  Restorer restorer({context_, &map, blobs_, workers_});
  const auto directory = CheckpointPath(options.checkpoint_dir, chosen->checkpoint);
  try {
    TRY(ReadAll(options.checkpoint_dir, *chosen, &restorer));
  } catch (const std::bad_alloc&) {
    return ResourceExhausted(
        fmt::format("{}: not enough memory to restore it", directory.string()));
  }
  metrics_.last = chosen->checkpoint;
  restored_ = chosen->checkpoint;
  LogInfo("server {}: restored from {}", options.index, directory.string());
  return Status::Ok();
}

}  // namespace shoal::ps
