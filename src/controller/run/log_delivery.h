// Which bytes of its tasks' logs a job's run has given to its observer, and the rest. Used by
// job_run.cc: lines come from the coordinator while it lives, and are read from the job's
// directory once it sends no more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>

#include "base/status.h"
#include "controller/files/log_store.h"

namespace shoal::controller {

// Belongs to one thread.
class LogDelivery {
 public:
  // `on_log` may be empty: then nothing is shown.
  LogDelivery(LogStore store, LogStore::OnBytes on_log)
      : store_(std::move(store)), on_log_(std::move(on_log)) {}

  // Before the tasks start: what is in the logs belongs to an earlier run of a resumed job.
  Status Begin();
  // From the coordinator: of each log the bytes behind the last ones.
  void Deliver(const LogKey& key, int64_t offset, std::string_view bytes);
  // When nothing is written any more: what the coordinator had not sent when it ended. Nothing
  // without Begin. Costs a look at the directory when nothing is missing. The first error, and the
  // other logs nevertheless.
  Status DeliverRest();

  bool wanted() const { return on_log_ != nullptr; }
  const std::map<LogKey, int64_t>& offsets() const { return offsets_; }

 private:
  Status DeliverRest(const LogInfo& log);

  const LogStore store_;
  const LogStore::OnBytes on_log_;
  bool begun_ = false;
  std::map<LogKey, int64_t> offsets_;
};

}  // namespace shoal::controller
