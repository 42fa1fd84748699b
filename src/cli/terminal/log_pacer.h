// Log lines on their way to a display whose reader may be slower than they come: what does not fit
// is not kept in memory, but read again from the job's log files when there is room. Used by
// job_runner.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>

#include "controller/files/log_store.h"

namespace shoal::cli {

// Belongs to the loop's thread. The bytes of each log are shown in order, each once.
class LogPacer {
 public:
  using Show =
      std::function<void(const controller::LogKey&, int64_t offset, std::string_view bytes)>;
  LogPacer(std::function<bool()> has_room, Show show)
      : has_room_(std::move(has_room)), show_(std::move(show)) {}

  // What was told by the job's coordinator, and is in `store` by then.
  void AddBytes(const controller::LogStore& store, const controller::LogKey& key, int64_t offset,
                std::string_view bytes);
  // Shows what was left out, as far as there is room; true if nothing is left out any more.
  bool CatchUp(const controller::LogStore& store);

 private:
  struct Gap {
    int64_t shown = 0;  // up to here
    int64_t end = 0;    // there is more up to here
  };
  const std::function<bool()> has_room_;
  const Show show_;
  std::map<controller::LogKey, Gap> behind_;
};

}  // namespace shoal::cli
