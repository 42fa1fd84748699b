// The policy of a queue as plain data: flavors of resources, the tree of queues with their quotas,
// and the rules of fairness, preemption and backfill. ParsePolicy makes it from a file
// (docs/queue.md is the reference); DefaultPolicy is what holds without one.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "queue/core/amounts.h"

namespace shoal::queue {

// A kind of machine: a GPU type, spot or on-demand, a label of nodes. All tasks of a job run on
// one flavor.
struct Flavor {
  std::string name;
  std::string engine;  // engine instance it belongs to; empty: any
  std::map<std::string, std::string> labels;
  bool spot = false;
};

// Quota of one resource of one flavor. Unset: nothing of its own, no limit of borrowing, all of it
// may be lent.
struct Quota {
  std::optional<int64_t> nominal;
  std::optional<int64_t> borrow;
  std::optional<int64_t> lend;
};
using FlavorQuota = std::array<Quota, kResources>;

// What the jobs of one user or team may hold at a time, in a queue and the queues below it.
struct HolderLimit {
  std::optional<int64_t> jobs;
  std::array<std::optional<int64_t>, kResources> amounts{};

  bool any() const { return jobs || amounts[0] || amounts[1] || amounts[2]; }
};

enum class QueueOrder : uint8_t { kBackfill, kStrict };
enum class QueueMode : uint8_t { kOpen, kHold, kDrain };
enum class PreemptRule : uint8_t { kNever, kLowerPriority, kAny };

struct QueueSpec {
  std::string name;
  std::string parent;                // empty: a root
  std::vector<std::string> flavors;  // in order of preference; empty: those of the tree's quotas
  std::map<std::string, FlavorQuota> quota;  // by flavor
  double weight = 1;
  QueueOrder order = QueueOrder::kBackfill;
  QueueMode mode = QueueMode::kOpen;
  PreemptRule preempt_within = PreemptRule::kLowerPriority;  // never or lower priority
  PreemptRule reclaim = PreemptRule::kAny;
  HolderLimit per_user;
  HolderLimit per_team;
  std::vector<std::string> operators;  // teams whose operators may hold, drain and resume it
};

// No job runs on these flavors during the window.
struct MaintenanceWindow {
  std::string name;
  Millis from{0};
  Millis until{0};
  std::vector<std::string> flavors;  // empty: all
};

struct Policy {
  std::vector<Flavor> flavors;
  std::vector<QueueSpec> queues;
  std::vector<MaintenanceWindow> windows;
  std::string default_queue = "default";  // of jobs that name none
  Millis usage_half_life = std::chrono::hours(24);
  Millis usage_period = std::chrono::minutes(1);  // interval at which usage is sampled
  bool backfill = true;
  Millis requeue_first = std::chrono::seconds(10);  // distance after the first failed gathering
  Millis requeue_most = std::chrono::minutes(30);
  Millis preempt_grace = std::chrono::seconds(30);  // expected time for saving and stopping
  bool grow = true;                                 // elastic jobs grow into free capacity
  Millis resize_pause = std::chrono::seconds(30);   // least time between two resizings of a job
};

// One queue "default" that may use every flavor without limit. `flavors`: names.
Policy DefaultPolicy(const std::vector<std::string>& flavors);

}  // namespace shoal::queue
