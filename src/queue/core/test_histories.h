// Random histories of a scheduler for its property tests: trees, jobs and events, with checks of
// the books after each step. Included by tests only.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "queue/core/scheduler.h"

namespace shoal::queue {

// A small deterministic generator: RapidCheck draws the seed, so that a history costs one draw.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  int64_t Below(int64_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<int64_t>((state_ >> 11) % static_cast<uint64_t>(bound));
  }
  bool Chance(int64_t one_in) { return Below(one_in) == 0; }

 private:
  uint64_t state_;
};

struct Options {
  bool exact_run_times = false;  // every job runs as long as it says
  bool one_priority = false;
  bool preempts = true;
  bool elastic = true;
  bool limits = true;
  bool capacity_changes = true;
  bool failures = true;  // to gather
};

inline Policy AnyPolicy(Random* random, const Options& options) {
  const int64_t flavors = 1 + random->Below(2);
  std::vector<std::string> names = {"a"};
  if (flavors == 2) names.push_back("b");
  Policy policy = DefaultPolicy(names);
  policy.queues.clear();
  policy.usage_half_life = random->Chance(2) ? Millis(0) : Millis(std::chrono::seconds(100));
  policy.usage_period = std::chrono::seconds(10);
  const int64_t count = 1 + random->Below(7);
  for (int64_t i = 0; i < count; ++i) {
    QueueSpec queue;
    queue.name = "q" + std::to_string(i);
    if (i > 0 && !random->Chance(4)) queue.parent = "q" + std::to_string(random->Below(i));
    for (const std::string& flavor : names) {
      if (random->Chance(3)) continue;
      Quota quota;
      quota.nominal = random->Below(9) * 1000;
      if (random->Chance(3)) quota.borrow = random->Below(9) * 1000;
      if (random->Chance(3)) quota.lend = random->Below(9) * 1000;
      queue.quota[flavor][2] = quota;
    }
    queue.weight = static_cast<double>(1 + random->Below(3));
    if (random->Chance(5)) queue.order = QueueOrder::kStrict;
    if (!options.preempts || random->Chance(3)) queue.preempt_within = PreemptRule::kNever;
    if (!options.preempts || random->Chance(3)) queue.reclaim = PreemptRule::kNever;
    if (options.limits && random->Chance(4)) queue.per_user.jobs = 1 + random->Below(3);
    if (options.limits && random->Chance(4))
      queue.per_user.amounts[2] = (1 + random->Below(8)) * 1000;
    policy.queues.push_back(queue);
  }
  policy.default_queue = policy.queues.back().name;
  return policy;
}

// What is charged to the nodes, from the jobs alone.
inline void CheckBooks(const SchedulerState& state) {
  const QuotaTree& tree = state.tree();
  for (size_t f = 0; f < tree.flavor_count(); ++f) {
    const auto flavor = static_cast<FlavorIndex>(f);
    QuotaTree::Usage usage = tree.EmptyUsage();
    QuotaTree::Usage real = tree.EmptyUsage();
    Amounts held;
    Amounts really;
    for (size_t i = 0; i < state.job_slots(); ++i) {
      const JobState& job = state.job(static_cast<JobRef>(i));
      if (!job.holds() || job.flavor != flavor) continue;
      tree.Charge(flavor, job.leaf, job.charge, &usage);
      tree.Charge(flavor, job.leaf, job.real, &real);
      held += job.charge;
      really += job.real;
      RC_ASSERT(job.phase != Phase::kAssigned || job.real.IsZero());
      RC_ASSERT(job.phase != Phase::kRunning || job.shrinking || job.real == job.charge);
    }
    RC_ASSERT(usage == state.ledger().usage(flavor));
    RC_ASSERT(real == state.ledger().real(flavor));
    RC_ASSERT(held == state.arenas().capacity(flavor).held);
    RC_ASSERT(really == state.arenas().capacity(flavor).real);
  }
  for (const Arena& arena : state.arenas().all()) {
    RC_ASSERT(std::is_sorted(arena.ends.begin(), arena.ends.end()));
    const Reservation& reservation = arena.reservation;
    if (reservation.job == kNoIndex) continue;
    QuotaTree::Usage shadow = tree.EmptyUsage();
    for (size_t i = 0; i < state.job_slots(); ++i) {
      const JobState& job = state.job(static_cast<JobRef>(i));
      if (!job.holds() || job.flavor != arena.flavor) continue;
      const Arena* const own = state.arenas().Of(job.flavor, job.leaf);
      if (own == &arena && !state.InShadow(arena, job)) continue;
      tree.Charge(arena.flavor, job.leaf, job.charge, &shadow);
    }
    const JobState& reserved = state.job(reservation.job);
    RC_ASSERT(reserved.phase == Phase::kWaiting);
    tree.Charge(arena.flavor, reserved.leaf, reserved.spec.request.Least(), &shadow);
    for (const NodeIndex root : arena.roots) {
      for (size_t n = 0; n < tree.nodes().size(); ++n) {
        if (tree.nodes()[n].root == root) RC_ASSERT(shadow[n] == reservation.shadow[n]);
      }
    }
  }
}

inline void CheckUsage(const QuotaTree& tree, FlavorIndex flavor, const QuotaTree::Usage& usage) {
  for (size_t n = 0; n < tree.nodes().size(); ++n) {
    const QuotaTree::Cell& cell = tree.cell(flavor, static_cast<NodeIndex>(n));
    const NodeIndex root = tree.nodes()[n].root;
    for (size_t r = 0; r < kResources; ++r) {
      if (!tree.Limits(flavor, root, r)) continue;
      if (root == static_cast<NodeIndex>(n)) {
        RC_ASSERT(usage[n][r] <= cell.subtree[r]);
      } else {
        RC_ASSERT(usage[n][r] <= cell.subtree[r] + cell.borrow[r]);
      }
    }
  }
}

// Nothing exceeds a quota, a borrowing limit or a capacity at any time: neither what jobs are to
// hold, nor what they hold while victims stop.
inline void CheckWithinLimits(const SchedulerState& state) {
  for (size_t f = 0; f < state.tree().flavor_count(); ++f) {
    const auto flavor = static_cast<FlavorIndex>(f);
    CheckUsage(state.tree(), flavor, state.ledger().usage(flavor));
    CheckUsage(state.tree(), flavor, state.ledger().real(flavor));
    RC_ASSERT(state.arenas().capacity(flavor).held.FitsIn(state.arenas().capacity(flavor).total));
    RC_ASSERT(state.arenas().capacity(flavor).real.FitsIn(state.arenas().capacity(flavor).total));
  }
}

// No tree holds more than its quotas are together.
inline void CheckWholes(const SchedulerState& state) {
  const QuotaTree& tree = state.tree();
  for (size_t f = 0; f < tree.flavor_count(); ++f) {
    const auto flavor = static_cast<FlavorIndex>(f);
    for (const Arena& arena : state.arenas().all()) {
      if (arena.flavor != flavor) continue;
      for (const NodeIndex root : arena.roots) {
        for (size_t r = 0; r < kResources; ++r) {
          if (tree.Limits(flavor, root, r))
            RC_ASSERT(state.ledger().held(flavor, root)[r] <= tree.Whole(flavor, root)[r]);
        }
      }
    }
  }
}

// A history: random events, decisions carried out by the rules of an engine.
class History {
 public:
  History(uint64_t seed, const Options& options)
      : random_(seed), options_(options), scheduler_(AnyPolicy(&random_, options), {}) {
    for (const Flavor& flavor : scheduler_.state().policy().flavors) {
      capacity_[flavor.name] = random_.Chance(4) ? kUnlimited : (2 + random_.Below(12)) * 1000;
      SetCapacity(flavor.name, capacity_[flavor.name]);
    }
  }

  void Step() {
    if (options_.exact_run_times) {
      EndDue();
    } else if (random_.Chance(2)) {
      EndOne();
    }
    for (int64_t i = random_.Below(4); i > 0; --i) Submit();
    ReleaseSome();
    if (options_.capacity_changes && random_.Chance(15)) ChangeCapacity();
    Decide();
  }
  void Advance(int64_t most) { now_ += std::chrono::seconds(random_.Below(most)); }

  void Submit() {
    const SchedulerState& state = scheduler_.state();
    JobSpec spec;
    spec.id = "j" + std::to_string(++count_);
    spec.order = count_;
    std::vector<std::string> leaves;
    for (const QuotaTree::Node& node : state.tree().nodes()) {
      if (node.leaf) leaves.push_back(node.spec.name);
    }
    spec.queue = leaves[static_cast<size_t>(random_.Below(static_cast<int64_t>(leaves.size())))];
    spec.user = "u" + std::to_string(random_.Below(3));
    if (!options_.one_priority) spec.priority = static_cast<int32_t>(random_.Below(3));
    spec.request.unit = {{0, 0, (1 + random_.Below(6)) * 1000}};
    if (options_.elastic && random_.Chance(4)) {
      spec.request.unit = {{0, 0, 1000}};
      spec.request.least = static_cast<int32_t>(1 + random_.Below(3));
      spec.request.most = spec.request.least + static_cast<int32_t>(random_.Below(5));
    }
    if (options_.exact_run_times || random_.Chance(2))
      spec.run_time = std::chrono::seconds(1 + random_.Below(60));
    RC_ASSERT(scheduler_.Submit(spec, now_).ok());
  }

  std::vector<JobRef> InPhase(Phase phase) const {
    std::vector<JobRef> jobs;
    for (size_t i = 0; i < scheduler_.state().job_slots(); ++i) {
      if (scheduler_.state().job(static_cast<JobRef>(i)).phase == phase)
        jobs.push_back(static_cast<JobRef>(i));
    }
    return jobs;
  }
  JobRef Pick(const std::vector<JobRef>& jobs) {
    return jobs.empty()
               ? kNoIndex
               : jobs[static_cast<size_t>(random_.Below(static_cast<int64_t>(jobs.size())))];
  }

  void EndOne() {
    const int64_t kind = random_.Below(8);
    if (kind == 0) {
      if (const JobRef job = Pick(InPhase(Phase::kWaiting)); job != kNoIndex)
        scheduler_.End(job, now_);
      return;
    }
    if (kind == 1) {
      if (const JobRef job = Pick(InPhase(Phase::kAssigned)); job != kNoIndex)
        scheduler_.End(job, now_);
      return;
    }
    const JobRef job = Pick(InPhase(Phase::kRunning));
    if (job == kNoIndex) return;
    if (options_.failures && kind == 2) {
      scheduler_.Requeue(job, RequeueCause::kNotGathered, now_);
    } else {
      physical_.erase(scheduler_.job(job).spec.id);
      scheduler_.End(job, now_);
    }
  }
  void EndDue() {
    for (const JobRef job : InPhase(Phase::kRunning)) {
      if (scheduler_.job(job).started + scheduler_.job(job).spec.run_time <= now_)
        scheduler_.End(job, now_);
    }
  }
  void EndAllRunning() {
    for (const JobRef job : InPhase(Phase::kRunning)) scheduler_.End(job, now_);
    for (const JobRef job : InPhase(Phase::kLeaving))
      scheduler_.Requeue(job, RequeueCause::kPreempted, now_);
  }
  // Victims stop, and shrinking jobs have shrunk, after a while.
  void ReleaseSome() {
    for (const JobRef job : InPhase(Phase::kLeaving)) {
      if (random_.Chance(2)) continue;
      scheduler_.Requeue(job, RequeueCause::kPreempted, now_);
    }
    for (const JobRef job : InPhase(Phase::kRunning)) {
      if (!scheduler_.job(job).shrinking || random_.Chance(2)) continue;
      scheduler_.Resized(job, scheduler_.job(job).size, now_);
    }
  }
  void SetCapacity(const std::string& flavor, int64_t gpus) {
    FlavorMachines machines;
    machines.total[2] = gpus;
    scheduler_.SetMachines(flavor, machines, now_);
  }
  void ChangeCapacity() {
    for (const Flavor& flavor : scheduler_.state().policy().flavors)
      SetCapacity(flavor.name, (2 + random_.Below(12)) * 1000);
  }

  const std::vector<Decision>& Decide() {
    decisions_ = scheduler_.Decide(now_);
    for (const Decision& decision : decisions_) Check(decision);
    CheckBooks(scheduler_.state());
    return decisions_;
  }

  void Check(const Decision& decision) {
    const JobState& job = scheduler_.job(decision.job);
    switch (decision.action) {
      case Action::kAdmit:
        // All tasks or none, and at least as many as it needs.
        RC_ASSERT(job.phase == Phase::kRunning);
        RC_ASSERT(job.size >= job.spec.request.least && job.size <= job.spec.request.most);
        RC_ASSERT(decision.flavor == job.flavor);
        break;
      case Action::kResize:
        RC_ASSERT(decision.size >= job.spec.request.least);
        RC_ASSERT(decision.size <= job.spec.request.most);
        break;
      case Action::kPreempt:
        RC_ASSERT(job.phase == Phase::kLeaving);
        break;
      case Action::kReserve:
        RC_ASSERT(job.phase == Phase::kWaiting || job.phase == Phase::kAssigned ||
                  job.phase == Phase::kRunning || job.phase == Phase::kLeaving);
        break;
      case Action::kRefuse:
        RC_ASSERT(job.phase == Phase::kImpossible);
        break;
    }
  }

  Scheduler& scheduler() { return scheduler_; }
  Millis now() const { return now_; }
  const std::vector<Decision>& decisions() const { return decisions_; }
  Random& random() { return random_; }

 private:
  Random random_;
  const Options options_;
  Scheduler scheduler_;
  std::map<std::string, int64_t> capacity_;
  std::set<std::string> physical_;
  std::vector<Decision> decisions_;
  Millis now_{0};
  int64_t count_ = 0;
};

inline int States() {
  const char* const text = std::getenv("SHOAL_PROPERTY_STATES");
  return text == nullptr ? 400 : std::atoi(text);
}

// Runs the property for that many seeds; RapidCheck draws the first, and reports it.
template <typename Property>
inline void ForAny(Property property) {
  const int states = States();
  EXPECT_TRUE(rc::check([&] {
    const auto base = *rc::gen::inRange<uint64_t>(1, uint64_t{1} << 40);
    for (int i = 0; i < std::max(1, states / 100); ++i) property(base + static_cast<uint64_t>(i));
  }));
}

}  // namespace shoal::queue
