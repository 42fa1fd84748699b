// Flow control for log lines to a slow display: lines that do not fit are not kept in memory but
// read again later from the job's stored logs. Used by job_runner.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "controller/files/log_store.h"

namespace shoal::cli {

// Must be used on the loop's thread. Shows the bytes of each log in order, once.
class LogPacer {
 public:
  using Show =
      std::function<void(const controller::LogKey&, int64_t offset, std::string_view bytes)>;
  // At most `limit` stored bytes from `offset`.
  using Read =
      std::function<Result<std::string>(const controller::LogKey&, int64_t offset, size_t limit)>;
  LogPacer(std::function<bool()> has_room, Show show, Read read)
      : has_room_(std::move(has_room)), show_(std::move(show)), read_(std::move(read)) {}

  // Adds bytes from the coordinator, which are stored by then.
  void AddBytes(const controller::LogKey& key, int64_t offset, std::string_view bytes);
  // Shows skipped bytes as far as there is room; true if none remain.
  bool CatchUp();

 private:
  struct Gap {
    int64_t shown = 0;  // shown up to this offset
    int64_t end = 0;    // available up to this offset
  };
  const std::function<bool()> has_room_;
  const Show show_;
  const Read read_;
  std::map<controller::LogKey, Gap> behind_;
};

}  // namespace shoal::cli
