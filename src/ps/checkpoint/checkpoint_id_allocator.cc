#include "ps/checkpoint/checkpoint_id_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ps/checkpoint/checkpoint_dir.h"

namespace shoal::ps {

Status CheckpointIdAllocator::Guard() {
  TRY_ASSIGN(const std::vector<int64_t> there, ListCheckpoints(root_));
  guarded_ = true;
  if (!there.empty()) found_ = there.back();
  return Status::Ok();
}

Result<int64_t> CheckpointIdAllocator::NextId(int64_t restored) {
  TRY_ASSIGN(const std::vector<int64_t> there, ListCheckpoints(root_));
  std::erase_if(begun_, [&](int64_t id) { return there.empty() || id < there.front(); });
  for (const int64_t id : there) {
    if (!guarded_ || id <= found_ || begun_.contains(id)) continue;
    const Status committed = ReadManifest(root_, id).status();
    if (committed.code() == Code::kNotFound) continue;
    return FailedPrecondition(fmt::format(
        "{} was committed by another job while this one uses the directory: nothing is saved, for "
        "their rows would be mixed; give each job a checkpoint directory of its own",
        CheckpointPath(root_, id).string()));
  }
  last_ = std::max(last_, restored) + 1;
  if (!there.empty()) last_ = std::max(last_, there.back() + 1);
  begun_.insert(last_);
  return last_;
}

}  // namespace shoal::ps
