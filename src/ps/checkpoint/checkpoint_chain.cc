#include "ps/checkpoint/checkpoint_chain.h"

#include <algorithm>

#include "base/log.h"

namespace shoal::ps {

bool CheckpointChain::Committed(const WrittenCheckpoint& written) const {
  if (written.id < 0) return false;
  const auto manifest = ReadManifest(root_, written.id);
  if (!manifest.ok()) return false;
  // A number may have been given twice, if the server that gives them was restarted in between.
  return std::any_of(manifest->files.begin(), manifest->files.end(), [&](const auto& file) {
    return file.name == written.file.name && file.bytes == written.file.bytes &&
           file.crc == written.file.crc && file.base == written.file.base;
  });
}

const WrittenCheckpoint* CheckpointChain::Base(uint64_t ownership,
                                               const std::vector<CutInterval>& cut_intervals) {
  if (Committed(last_)) base_ = std::move(last_);
  last_ = {};
  if (base_.id < 0 || base_.deltas >= max_deltas_ || base_.ownership != ownership) return nullptr;
  for (size_t lane = 0; lane < cut_intervals.size(); ++lane) {
    if (cut_intervals[lane].generation != base_.cut_intervals[lane].generation) return nullptr;
  }
  if (!Committed(base_)) return nullptr;
  const auto chain = ChainOf(root_, base_.id, base_.file);
  if (chain.ok()) return &base_;
  LogWarning("the next checkpoint is whole, because the one before is damaged: {}",
             chain.status().message());
  return nullptr;
}

bool CheckpointChain::WorthContinuing(const WrittenCheckpoint& base, uint64_t bytes) const {
  return base.delta_bytes + bytes <= base.whole_bytes / 2;
}

}  // namespace shoal::ps
