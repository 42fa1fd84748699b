#include "queue/core/waiting_lines.h"

#include <algorithm>

namespace shoal::queue {
namespace {

// Spreads the numbers of jobs over the heap order. The shape of a treap changes no result.
uint32_t HeapOrder(int64_t serial) {
  auto x = static_cast<uint64_t>(serial) * 0x9E3779B97F4A7C15ULL;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ULL;
  return static_cast<uint32_t>(x >> 32);
}

}  // namespace

WaitingLines::Line WaitingLines::AddLine() {
  roots_.push_back(kNoIndex);
  return static_cast<Line>(roots_.size() - 1);
}

void WaitingLines::Insert(Line line, JobRef job, const JobState& state) {
  if (nodes_.size() <= static_cast<size_t>(job)) nodes_.resize(static_cast<size_t>(job) + 1);
  Node& node = at(job);
  node.left = node.right = kNoIndex;
  node.heap = HeapOrder(state.serial);
  node.priority = state.spec.priority;
  node.order = state.spec.order;
  node.id = state.spec.id;
  node.flavors = state.flavor_mask;
  node.demand = state.spec.request.Least();
  node.run_time = state.spec.run_time > Millis(0) ? state.spec.run_time : kForever;
  Pull(job);
  int32_t& root = roots_[static_cast<size_t>(line)];
  root = InsertBelow(root, job);
}

void WaitingLines::Erase(Line line, JobRef job) {
  int32_t& root = roots_[static_cast<size_t>(line)];
  root = EraseBelow(root, job);
}

JobRef WaitingLines::First(Line line) const {
  int32_t node = roots_[static_cast<size_t>(line)];
  while (node != kNoIndex && at(node).left != kNoIndex) node = at(node).left;
  return node;
}

JobRef WaitingLines::FirstFit(Line line, const LineBounds& bounds, JobRef after) const {
  return Search(roots_[static_cast<size_t>(line)], bounds, after);
}

size_t WaitingLines::CountBefore(Line line, JobRef job) const {
  size_t count = 0;
  for (int32_t node = roots_[static_cast<size_t>(line)]; node != kNoIndex;) {
    if (node != job && Before(node, job)) {
      count += 1 + (at(node).left == kNoIndex ? 0 : static_cast<size_t>(at(at(node).left).count));
      node = at(node).right;
    } else {
      node = at(node).left;
    }
  }
  return count;
}

bool WaitingLines::Before(JobRef a, JobRef b) const {
  const Node& first = at(a);
  const Node& second = at(b);
  if (first.priority != second.priority) return first.priority > second.priority;
  if (first.order != second.order) return first.order < second.order;
  return first.id < second.id;
}

void WaitingLines::AppendAll(Line line, std::vector<JobRef>* jobs) const {
  Collect(roots_[static_cast<size_t>(line)], jobs);
}

void WaitingLines::Pull(int32_t index) {
  Node& node = at(index);
  node.count = 1;
  node.any_flavors = node.flavors;
  node.least_demand = node.demand;
  node.least_run_time = node.run_time;
  for (const int32_t child : {node.left, node.right}) {
    if (child == kNoIndex) continue;
    const Node& below = at(child);
    node.count += below.count;
    node.any_flavors |= below.any_flavors;
    node.least_demand = Min(node.least_demand, below.least_demand);
    node.least_run_time = std::min(node.least_run_time, below.least_run_time);
  }
}

void WaitingLines::Split(int32_t root, JobRef job, int32_t* before, int32_t* after) {
  if (root == kNoIndex) {
    *before = *after = kNoIndex;
    return;
  }
  if (Before(root, job)) {
    int32_t rest = kNoIndex;
    Split(at(root).right, job, &rest, after);
    at(root).right = rest;
    *before = root;
  } else {
    int32_t rest = kNoIndex;
    Split(at(root).left, job, before, &rest);
    at(root).left = rest;
    *after = root;
  }
  Pull(root);
}

int32_t WaitingLines::Merge(int32_t before, int32_t after) {
  if (before == kNoIndex) return after;
  if (after == kNoIndex) return before;
  int32_t root = before;
  if (at(before).heap > at(after).heap) {
    const int32_t merged = Merge(at(before).right, after);
    at(before).right = merged;
  } else {
    const int32_t merged = Merge(before, at(after).left);
    at(after).left = merged;
    root = after;
  }
  Pull(root);
  return root;
}

int32_t WaitingLines::InsertBelow(int32_t root, int32_t added) {
  if (root == kNoIndex) return added;
  if (at(added).heap > at(root).heap) {
    int32_t before = kNoIndex;
    int32_t after = kNoIndex;
    Split(root, added, &before, &after);
    at(added).left = before;
    at(added).right = after;
    Pull(added);
    return added;
  }
  if (Before(added, root)) {
    const int32_t child = InsertBelow(at(root).left, added);
    at(root).left = child;
  } else {
    const int32_t child = InsertBelow(at(root).right, added);
    at(root).right = child;
  }
  Pull(root);
  return root;
}

int32_t WaitingLines::EraseBelow(int32_t root, int32_t erased) {
  if (root == kNoIndex) return kNoIndex;
  if (root == erased) return Merge(at(root).left, at(root).right);
  if (Before(erased, root)) {
    const int32_t child = EraseBelow(at(root).left, erased);
    at(root).left = child;
  } else {
    const int32_t child = EraseBelow(at(root).right, erased);
    at(root).right = child;
  }
  Pull(root);
  return root;
}

int32_t WaitingLines::Search(int32_t root, const LineBounds& bounds, JobRef after) const {
  if (root == kNoIndex) return kNoIndex;
  const Node& node = at(root);
  if ((node.any_flavors & bounds.flavors) == 0) return kNoIndex;
  if (node.least_run_time > bounds.run_time) return kNoIndex;
  if (!node.least_demand.FitsIn(bounds.amounts)) return kNoIndex;
  const bool later = after == kNoIndex || (root != after && Before(after, root));
  if (later) {
    if (const int32_t found = Search(node.left, bounds, after); found != kNoIndex) return found;
    if ((node.flavors & bounds.flavors) != 0 && node.run_time <= bounds.run_time &&
        node.demand.FitsIn(bounds.amounts)) {
      return root;
    }
    // Everything to the right of a later node is later.
    return Search(node.right, bounds, kNoIndex);
  }
  return Search(node.right, bounds, after);
}

void WaitingLines::Collect(int32_t root, std::vector<JobRef>* jobs) const {
  if (root == kNoIndex) return;
  Collect(at(root).left, jobs);
  jobs->push_back(root);
  Collect(at(root).right, jobs);
}

}  // namespace shoal::queue
