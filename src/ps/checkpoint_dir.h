// The directory of a job's checkpoints: checkpoint-<id>/server-<k>.ckpt and, once all servers have
// written theirs, manifest.json, whose appearance commits the checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::ps {

struct CheckpointFile {
  std::string name;  // within the checkpoint's directory
  uint64_t bytes = 0;
  uint32_t crc = 0;
};

struct Manifest {
  int64_t checkpoint = -1;
  std::vector<CheckpointFile> files;  // one a server, in index order
  std::vector<int> workers;           // whose progress it holds
};

std::filesystem::path CheckpointPath(const std::filesystem::path& root, int64_t id);
std::string CheckpointFileName(int server);

// Ids of all directories there, committed or not, ascending. Empty if the root is missing.
std::vector<int64_t> ListCheckpoints(const std::filesystem::path& root);

std::string EncodeManifest(const Manifest& manifest);
// InvalidArgument names the field. File names with a path in them are refused.
Result<Manifest> DecodeManifest(std::string_view text);
// NotFound if the checkpoint was not committed.
Result<Manifest> ReadManifest(const std::filesystem::path& root, int64_t id);

// Commits: every file must be there with its size. Then removes what is older than the newest
// `keep` committed checkpoints, and what older ones left half-written.
Status CommitManifest(const std::filesystem::path& root, const Manifest& manifest, int keep);
// Removes the directory of a checkpoint that was not committed.
void RemoveUncommitted(const std::filesystem::path& root, int64_t id);

// The newest committed checkpoint whose files are all whole (read and checked to the end: every
// server comes to the same answer). NotFound if none was ever committed; DataLoss, saying what is
// wrong with the newest, if none of them is whole. O(bytes).
Result<Manifest> NewestWhole(const std::filesystem::path& root);

}  // namespace shoal::ps
