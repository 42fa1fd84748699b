// Why tasks of a job do not start yet, in their engine's words: what job_run.cc tells the user
// while they wait, and what it adds to the reason of a job that failed meanwhile.
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
  // What is new for people in an engine's word of a task: "worker 3 waits: …"; empty: nothing. Many
  // tasks wait for the same; each reason is told once for its role, and no more than 32 in all.
  std::string ApplyEvent(const engine::TaskEvent& event);
  // The reason of a failure, with what the first task waits for still behind it.
  std::string Explain(const std::string& reason) const;

 private:
  std::map<std::pair<std::string, int>, std::string> waiting_;
  std::set<std::pair<std::string, std::string>> told_;
};

}  // namespace shoal::controller
