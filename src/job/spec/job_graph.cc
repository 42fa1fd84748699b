#include "job/spec/job_graph.h"

#include <algorithm>
#include <map>
#include <set>

namespace shoal::job {
namespace {

// "a waits for b, which waits for a", along the jobs that are not in the order.
std::string CycleText(const std::vector<GraphJob>& jobs,
                      const std::vector<std::vector<size_t>>& needs, std::vector<size_t> left) {
  std::vector<size_t> path{left.front()};
  const std::set<size_t> unordered(left.begin(), left.end());
  while (true) {
    const auto& next = needs[path.back()];
    const auto step =
        std::ranges::find_if(next, [&](size_t one) { return unordered.contains(one); });
    const auto seen = std::ranges::find(path, *step);
    if (seen != path.end()) {
      path.erase(path.begin(), seen);
      break;
    }
    path.push_back(*step);
  }
  std::string text = jobs[path.front()].name;
  for (size_t i = 1; i <= path.size(); ++i)
    text += (i == 1 ? " waits for " : ", which waits for ") + jobs[path[i % path.size()]].name;
  return text;
}

}  // namespace

std::vector<size_t> OrderOf(const std::vector<GraphJob>& jobs, GraphError* error) {
  std::map<std::string, size_t> by_name;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (by_name.emplace(jobs[i].name, i).second) continue;
    *error = {i, true,
              "got " + jobs[i].name +
                  " a second time, expected a name of its own for each job of "
                  "the file"};
    return {};
  }
  std::vector<std::vector<size_t>> needs(jobs.size());
  std::vector<std::vector<size_t>> followers(jobs.size());
  std::vector<size_t> open(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    for (const Dependency& one : jobs[i].after) {
      const auto found = by_name.find(one.job);
      if (found == by_name.end()) continue;
      needs[i].push_back(found->second);
      followers[found->second].push_back(i);
      ++open[i];
    }
  }
  std::set<size_t> ready;
  for (size_t i = 0; i < jobs.size(); ++i)
    if (open[i] == 0) ready.insert(i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (const size_t follower : followers[next])
      if (--open[follower] == 0) ready.insert(follower);
  }
  if (order.size() == jobs.size()) return order;
  std::vector<size_t> left;
  for (size_t i = 0; i < jobs.size(); ++i)
    if (std::ranges::find(order, i) == order.end()) left.push_back(i);
  *error = {left.front(), false,
            "got a cycle: " + CycleText(jobs, needs, left) +
                "; expected jobs of which at least one waits for no other"};
  return {};
}

}  // namespace shoal::job
