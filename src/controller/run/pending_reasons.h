// The engine's reasons why tasks do not start yet. job_run.cc reports them to the user and appends
// them to the reason of a job that failed meanwhile.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "engine/engine.h"

namespace shoal::controller {

// Not thread-safe.
class PendingReasons {
 public:
  // Applies an engine event and returns a new reason to report, "worker 3 waits: …", or an empty
  // text. A reason is reported once per role, and at most 32 are reported in all.
  std::string ApplyEvent(const engine::TaskEvent& event);
  // `reason`, followed by the reason of the first task that still waits.
  std::string Explain(const std::string& reason) const;

 private:
  std::map<std::pair<std::string, int>, std::string> waiting_;
  std::set<std::pair<std::string, std::string>> told_;
};

}  // namespace shoal::controller
