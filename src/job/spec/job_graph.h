// The jobs of one file that wait for one another.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "job/spec/triggers.h"

namespace shoal::job {

// A job of the file. Plain value.
struct GraphJob {
  std::string name;
  std::vector<Dependency> after;
};

// Why the jobs cannot run, and of which one.
struct GraphError {
  size_t job = 0;
  bool of_name = false;  // its field `name`; else `after`
  std::string sentence;
};

// The order in which every job follows those of the file that it names; other names are not looked
// at. The order of the file where it is free. An empty order with `error` set for a name that two
// jobs have, and for a cycle. O(jobs + dependencies).
std::vector<size_t> OrderOf(const std::vector<GraphJob>& jobs, GraphError* error);

}  // namespace shoal::job
