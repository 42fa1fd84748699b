// The directory of a job's checkpoints: checkpoint-<id>/server-<k>.ckpt and, once all servers have
// written theirs, manifest.json, whose appearance commits the checkpoint.
//
// A server's file is whole or continues its file in an earlier checkpoint; a checkpoint stands on
// all directories that its files' chains lead to, and these stay as long as it does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::ps {

struct CheckpointFile {
  std::string name;  // within the checkpoint's directory
  uint64_t bytes = 0;
  uint32_t crc = 0;
  int64_t base = -1;  // the checkpoint whose file of that name it continues; -1: it is whole
};

struct Manifest {
  int64_t checkpoint = -1;
  std::vector<CheckpointFile> files;  // one a server, in index order
  std::vector<int> workers;           // whose progress it holds
};

std::filesystem::path CheckpointPath(const std::filesystem::path& root, int64_t id);
std::string CheckpointFileName(int server);

// Ids of all directories there, committed or not, ascending. Empty if the root is missing; an error
// if it cannot be read.
Result<std::vector<int64_t>> ListCheckpoints(const std::filesystem::path& root);

std::string EncodeManifest(const Manifest& manifest);
// InvalidArgument names the field. File names with a path in them are refused.
Result<Manifest> DecodeManifest(std::string_view text);
// NotFound if the checkpoint was not committed.
Result<Manifest> ReadManifest(const std::filesystem::path& root, int64_t id);

// One file of a chain; the file that it continues comes before it.
struct ChainLink {
  int64_t checkpoint = -1;
  CheckpointFile file;
};
// The chain of `file` of a checkpoint: the whole file first, `file` itself last; all exist with
// their sizes. DataLoss or FailedPrecondition names what is missing. Reads a manifest a connection.
Result<std::vector<ChainLink>> ChainOf(const std::filesystem::path& root, int64_t checkpoint,
                                       const CheckpointFile& file);

// Which checkpoints stay when another is committed.
struct Retention {
  int keep = 2;               // the newest so many, and what they stand on; of 2 or more, two of
                              // those that stay share no file, so that no damage meets both
  std::set<int64_t> damaged;  // not worth keeping
};

// Commits: every file must be there with its size. Then removes older checkpoints, and what they
// left half-written.
Status CommitManifest(const std::filesystem::path& root, const Manifest& manifest,
                      const Retention& retention);
// Removes the directory of a checkpoint that was not committed.
void RemoveUncommitted(const std::filesystem::path& root, int64_t id);

// The newest committed checkpoint whose files, and those that they continue, are all undamaged
// (read and checked to the last byte: every server comes to the same answer). NotFound if none was
// ever committed; DataLoss, saying what is wrong with the newest, if none of them is. Any other
// error: something could not be read, which says nothing about what is there. *damaged, unless
// null, gets those that were passed over. O(bytes).
Result<Manifest> NewestIntact(const std::filesystem::path& root,
                              std::set<int64_t>* damaged = nullptr);

// This one, if it was committed and is undamaged. Errors as above.
Result<Manifest> ReadIntactCheckpoint(const std::filesystem::path& root, int64_t id);

class CheckpointVisitor;
// All that the checkpoint holds, file by file, each chain from its whole file on.
Status ReadAll(const std::filesystem::path& root, const Manifest& manifest,
               CheckpointVisitor* visitor);

}  // namespace shoal::ps
