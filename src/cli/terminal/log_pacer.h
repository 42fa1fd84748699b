// Flow control for log lines to a slow display: lines that do not fit are not kept in memory but
// read again later from the job's log files. Used by job_runner.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>

#include "controller/files/log_store.h"

namespace shoal::cli {

// Must be used on the loop's thread. Shows the bytes of each log in order, once.
class LogPacer {
 public:
  using Show =
      std::function<void(const controller::LogKey&, int64_t offset, std::string_view bytes)>;
  LogPacer(std::function<bool()> has_room, Show show)
      : has_room_(std::move(has_room)), show_(std::move(show)) {}

  // Adds bytes from the coordinator, which `store` contains by then.
  void AddBytes(const controller::LogStore& store, const controller::LogKey& key, int64_t offset,
                std::string_view bytes);
  // Shows skipped bytes as far as there is room; true if none remain.
  bool CatchUp(const controller::LogStore& store);

 private:
  struct Gap {
    int64_t shown = 0;  // shown up to this offset
    int64_t end = 0;    // available up to this offset
  };
  const std::function<bool()> has_room_;
  const Show show_;
  std::map<controller::LogKey, Gap> behind_;
};

}  // namespace shoal::cli
