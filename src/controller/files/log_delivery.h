// Delivers each byte of the tasks' logs to the observer exactly once: from the coordinator while it
// lives, then the rest from the job's directory. Used by job_run.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>

#include "base/status.h"
#include "controller/files/log_store.h"

namespace shoal::controller {

// Must be used from one thread.
class LogDelivery {
 public:
  // `on_log` may be empty: nothing is delivered then. Without `rest` DeliverRest has no effect.
  LogDelivery(LogStore store, LogStore::OnBytes on_log, bool rest = true)
      : store_(std::move(store)), on_log_(std::move(on_log)), rest_(rest) {}

  // To be called before the tasks start. Existing log contents belong to an earlier run of a
  // resumed job and are skipped.
  Status Begin();
  // Delivers bytes from the coordinator, except those already delivered.
  void Deliver(const LogKey& key, int64_t offset, std::string_view bytes);
  // To be called when no more is written: delivers the bytes that the coordinator did not send. No
  // effect without Begin. Costs one directory listing if nothing is missing. Returns the first
  // error, after trying all logs.
  Status DeliverRest();

  bool wanted() const { return on_log_ != nullptr; }
  const std::map<LogKey, int64_t>& offsets() const { return offsets_; }

 private:
  Status DeliverRest(const LogInfo& log);

  const LogStore store_;
  const LogStore::OnBytes on_log_;
  const bool rest_;
  bool begun_ = false;
  std::map<LogKey, int64_t> offsets_;
};

}  // namespace shoal::controller
