// The waiting jobs in order, with a search for the first that fits into given amounts.
//
// Each line is a treap in the order priority, submission, id. Its nodes know the least demand and
// the least run time below them, so that the search skips subtrees in which nothing fits:
// O(log n) where demands are similar, O(n) at worst.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "queue/core/amounts.h"
#include "queue/core/job.h"

namespace shoal::queue {

// What a search accepts. `run_time`: a job fits only if it is known to run at most this long.
struct LineBounds {
  Amounts amounts = kNoLimit;
  Millis run_time = kForever;
  uint32_t flavors = ~0U;  // at least one of these must be allowed for the job
};

// Copyable. Jobs are named by their JobRef; each is in at most one line. Not thread-safe.
class WaitingLines {
 public:
  using Line = int32_t;

  Line AddLine();
  void Insert(Line line, JobRef job, const JobState& state);
  void Erase(Line line, JobRef job);
  size_t size(Line line) const {
    const int32_t root = roots_[static_cast<size_t>(line)];
    return root == kNoIndex ? 0 : static_cast<size_t>(at(root).count);
  }
  // The first job of the line; kNoIndex if it is empty.
  JobRef First(Line line) const;
  // The first job within the bounds whose place is after `after` (kNoIndex: from the beginning).
  JobRef FirstFit(Line line, const LineBounds& bounds, JobRef after = kNoIndex) const;
  // Number of jobs of the line before this one, which need not be in the line. O(log n).
  size_t CountBefore(Line line, JobRef job) const;
  // True if `a` goes before `b`.
  bool Before(JobRef a, JobRef b) const;
  // Jobs of the line in order. O(n).
  void AppendAll(Line line, std::vector<JobRef>* jobs) const;

 private:
  struct Node {
    int32_t left = kNoIndex;
    int32_t right = kNoIndex;
    uint32_t heap = 0;  // larger ones above
    int32_t count = 1;
    int32_t priority = 0;
    int64_t order = 0;
    std::string id;
    uint32_t flavors = 0;
    uint32_t any_flavors = 0;  // of the subtree
    Amounts demand;
    Amounts least_demand;
    Millis run_time = kForever;
    Millis least_run_time = kForever;
  };

  Node& at(int32_t index) { return nodes_[static_cast<size_t>(index)]; }
  const Node& at(int32_t index) const { return nodes_[static_cast<size_t>(index)]; }
  void Pull(int32_t index);
  void Split(int32_t root, JobRef job, int32_t* before, int32_t* after);
  int32_t Merge(int32_t before, int32_t after);
  int32_t InsertBelow(int32_t root, int32_t added);
  int32_t EraseBelow(int32_t root, int32_t erased);
  int32_t Search(int32_t root, const LineBounds& bounds, JobRef after) const;
  void Collect(int32_t root, std::vector<JobRef>* jobs) const;

  std::vector<Node> nodes_;  // by JobRef
  std::vector<int32_t> roots_;
};

}  // namespace shoal::queue
