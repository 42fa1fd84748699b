#include "cli/terminal/log_pacer.h"

#include <algorithm>
#include <iterator>

#include "base/log.h"

namespace shoal::cli {
namespace {

constexpr int64_t kPiece = int64_t{256} << 10;

}  // namespace

void LogPacer::AddBytes(const controller::LogKey& key, int64_t offset, std::string_view bytes) {
  const int64_t end = offset + static_cast<int64_t>(bytes.size());
  const auto behind = behind_.find(key);
  if (behind != behind_.end()) {
    behind->second.end = end;
    CatchUp();
  } else if (has_room_()) {
    show_(key, offset, bytes);
  } else {
    behind_[key] = {offset, end};
  }
}

bool LogPacer::CatchUp() {
  while (!behind_.empty() && has_room_()) {
    // One piece of each log in turn.
    for (auto log = behind_.begin(); log != behind_.end() && has_room_();) {
      Gap& gap = log->second;
      const auto size = static_cast<size_t>(std::min(kPiece, gap.end - gap.shown));
      const Result<std::string> bytes = read_(log->first, gap.shown, size);
      if (bytes.ok() && !bytes->empty()) {
        show_(log->first, gap.shown, *bytes);
        gap.shown += static_cast<int64_t>(bytes->size());
      } else {
        LogWarning("log lines are not shown: {}",
                   bytes.ok() ? "their file is shorter than it was" : bytes.status().message());
        gap.shown = gap.end;
      }
      log = gap.shown >= gap.end ? behind_.erase(log) : std::next(log);
    }
  }
  return behind_.empty();
}

}  // namespace shoal::cli
