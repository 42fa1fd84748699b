// Writes one server's file of a checkpoint from the frozen snapshots of its lanes.
//
// Owned by CheckpointService and used by its background thread alone. A lane's lock is taken for
// one block of rows at a time, a few microseconds each, so that training goes on.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ps/checkpoint/checkpoint_chain.h"
#include "ps/checkpoint/checkpoint_file.h"
#include "ps/lane/server_context.h"
#include "ps/storage/blob_store.h"

namespace shoal::ps {

class ServerFileWriter {
 public:
  // All that is pointed to outlives it. `blobs` and `progress`: guarded by lane 0's lock.
  ServerFileWriter(ServerContext* context, const BlobStore* blobs,
                   const std::map<int, std::string>* progress)
      : context_(context),
        blobs_(blobs),
        progress_(progress),
        chain_(context->options.checkpoint_dir, context->options.checkpoint_deltas) {}

  // Writes the file and makes it durable, then releases the lanes' snapshots. `ownership`: version
  // of the set of shards that this server owns. Aborted if the checkpoint is given up meanwhile.
  Result<CheckpointFile> Write(int64_t id, uint64_t ownership);

 private:
  struct Job;
  Result<std::vector<CutInterval>> FrozenCutIntervals(int64_t id);
  Result<uint64_t> BytesSince(int64_t id, const WrittenCheckpoint& base);
  Result<const WrittenCheckpoint*> ChooseBase(int64_t id, uint64_t ownership,
                                              const std::vector<CutInterval>& cut_intervals);
  Status WriteTables(Job* job);
  Status WriteOneTable(Job* job, uint32_t lane, uint32_t table);
  Status WriteBlobs(Job* job);

  ServerContext* const context_;
  const BlobStore* const blobs_;
  const std::map<int, std::string>* const progress_;
  CheckpointChain chain_;
};

}  // namespace shoal::ps
