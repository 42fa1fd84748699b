// The files that a server has written for checkpoints, and whether its next one may hold only what
// has changed since one of them.
//
// Owned by ServerFileWriter, on the checkpoint thread. Only server 0 learns that a checkpoint was
// committed; the others find its manifest when they write the next one.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ps/checkpoint/checkpoint_dir.h"
#include "ps/lane/lane.h"
#include "ps/storage/blob_store.h"

namespace shoal::ps {

// A file that this server wrote, and the state that it holds.
struct WrittenCheckpoint {
  int64_t id = -1;
  CheckpointFile file;
  uint64_t ownership = 0;  // version of the partition: another owner's rows are another file's
  std::vector<CutInterval> cut_intervals;  // by lane, which the cut ended
  std::map<std::string, std::weak_ptr<const std::string>, std::less<>> blobs;  // owned by BlobStore
  uint64_t whole_bytes = 0;  // of the file that the chain begins with
  uint64_t delta_bytes = 0;  // of all that continue it
  int deltas = 0;
};

class CheckpointChain {
 public:
  // max_deltas: files after one that is whole; 0: all are whole.
  CheckpointChain(std::filesystem::path root, int max_deltas)
      : root_(std::move(root)), max_deltas_(max_deltas) {}

  // The newest committed file that one of these lanes may continue; null if it has to be whole.
  // Reads manifests: O(length of the chain).
  const WrittenCheckpoint* Base(uint64_t ownership, const std::vector<CutInterval>& cut_intervals);
  // Whether to continue `base` with so many more bytes: a chain's deltas stay below half of what
  // it begins with, so that reading it costs at most 1.5 times a whole file.
  bool WorthContinuing(const WrittenCheckpoint& base, uint64_t bytes) const;
  // The file is durable. Until it is known to be committed its base is kept.
  void RecordWritten(WrittenCheckpoint written) { last_ = std::move(written); }

 private:
  bool Committed(const WrittenCheckpoint& written) const;

  const std::filesystem::path root_;
  const int max_deltas_;
  WrittenCheckpoint base_;  // committed
  WrittenCheckpoint last_;  // perhaps
};

}  // namespace shoal::ps
