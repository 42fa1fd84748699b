// Properties of the scheduler over random trees, jobs and events: every job starts in the end.
//
// SHOAL_PROPERTY_STATES sets the number of random histories per property (the slow lane uses
// 100,000); RC_PARAMS="seed=…" repeats one.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "queue/core/test_histories.h"

namespace shoal::queue {
namespace {

using std::chrono::seconds;

// When nothing comes any more and jobs end, every possible job starts.
TEST(SchedulerProperty, NoJobStarves) {
  Options options;
  options.one_priority = true;
  options.capacity_changes = false;
  ForAny([&](uint64_t seed) {
    History history(seed, options);
    for (int i = 0; i < 20; ++i) {
      history.Step();
      history.Advance(10);
    }
    for (int i = 0; i < 400 && !(history.InPhase(Phase::kWaiting).empty() &&
                                 history.InPhase(Phase::kDelayed).empty() &&
                                 history.InPhase(Phase::kAssigned).empty());
         ++i) {
      history.EndAllRunning();
      history.Advance(600);
      history.Decide();
    }
    RC_ASSERT(history.InPhase(Phase::kWaiting).empty());
    RC_ASSERT(history.InPhase(Phase::kAssigned).empty());
  });
}

// A gang starts although small jobs keep coming in every queue: the freed capacity goes to it.
TEST(SchedulerProperty, SmallJobsThatKeepComingDoNotStarveAGang) {
  Options options;
  options.exact_run_times = options.one_priority = true;
  options.preempts = options.elastic = options.limits = options.capacity_changes = false;
  ForAny([&](uint64_t seed) {
    History history(seed, options);
    for (int i = 0; i < 10; ++i) history.Step();
    Scheduler& scheduler = history.scheduler();
    // The largest possible gang of the default queue.
    const NodeIndex leaf =
        scheduler.state().tree().FindNode(scheduler.state().policy().default_queue);
    const FlavorIndex flavor = scheduler.state().tree().node(leaf).flavors.front();
    const Amounts most = Min(scheduler.state().tree().Most(flavor, leaf),
                             scheduler.state().arenas().capacity(flavor).total);
    if (most[2] <= 0 || most[2] >= kUnlimited) return;
    JobSpec gang;
    gang.id = "gang";
    gang.queue = scheduler.state().policy().default_queue;
    gang.flavors = {scheduler.state().tree().flavor_name(flavor)};
    gang.order = 12;
    gang.request.unit = {{0, 0, most[2]}};
    gang.run_time = seconds(10);
    const Result<JobRef> job = scheduler.Submit(gang, history.now());
    RC_ASSERT(job.ok());
    bool started = false;
    for (int i = 0; i < 3000 && !started; ++i) {
      history.Advance(3);
      history.Step();
      started = scheduler.job(*job).phase == Phase::kRunning;
    }
    RC_ASSERT(started);
  });
}

// A reserved job that the owner may not delay can make a further victim necessary: such states
// count as right.
bool NoVictimCanBeSpared(const SchedulerState& state, JobRef owner,
                         const std::vector<int64_t>& nominal) {
  if (state.arenas().all().front().reservation.job != kNoIndex) return true;
  std::vector<JobRef> victims;
  int64_t held = state.arenas().capacity(0).held[2];
  for (size_t i = 0; i < state.job_slots(); ++i) {
    if (state.job(static_cast<JobRef>(i)).beneficiary != owner) continue;
    victims.push_back(static_cast<JobRef>(i));
    held -= state.job(victims.back()).charge[2];
  }
  int64_t total = 0;
  for (const int64_t n : nominal) total += n * 1000;
  return std::all_of(victims.begin(), victims.end(), [&](JobRef victim) {
    return held + state.job(victim).spec.request.unit[2] > total;
  });
}

// Lent capacity comes back in one decision: a job within the nominal quota of its queue gets
// started or its resources set aside at once, if only borrowers are in its way.
TEST(SchedulerProperty, LentCapacityComesBackInOneDecision) {
  ForAny([](uint64_t seed) {
    Random random(seed);
    Policy policy = DefaultPolicy({"a"});
    policy.queues.clear();
    QueueSpec root;
    root.name = "root";
    policy.queues.push_back(root);
    const int64_t count = 2 + random.Below(4);
    std::vector<int64_t> nominal;
    for (int64_t i = 0; i < count; ++i) {
      QueueSpec queue;
      queue.name = "q" + std::to_string(i);
      queue.parent = "root";
      nominal.push_back(1 + random.Below(8));
      queue.quota["a"][2].nominal = nominal.back() * 1000;
      policy.queues.push_back(queue);
    }
    policy.default_queue = "q0";
    Scheduler scheduler(policy);
    for (int64_t i = 0; i < 40; ++i) {
      JobSpec spec;
      spec.id = "b" + std::to_string(i);
      spec.order = i;
      spec.queue = "q" + std::to_string(1 + random.Below(count - 1));
      spec.request.unit = {{0, 0, (1 + random.Below(4)) * 1000}};
      RC_ASSERT(scheduler.Submit(spec, Millis(i)).ok());
      for (bool more = true; more;) {  // victims stop at once
        scheduler.Decide(Millis(i));
        more = false;
        for (size_t j = 0; j < scheduler.state().job_slots(); ++j) {
          const auto other = static_cast<JobRef>(j);
          if (scheduler.job(other).phase != Phase::kLeaving) continue;
          scheduler.Requeue(other, RequeueCause::kPreempted, Millis(i));
          more = true;
        }
      }
    }
    JobSpec owner;
    owner.id = "owner";
    owner.queue = "q0";
    owner.request.unit = {{0, 0, (1 + random.Below(nominal[0])) * 1000}};
    const Result<JobRef> job = scheduler.Submit(owner, Millis(1000));
    RC_ASSERT(job.ok());
    scheduler.Decide(Millis(1000));
    RC_ASSERT(scheduler.job(*job).phase == Phase::kRunning ||
              scheduler.job(*job).phase == Phase::kAssigned);
    RC_ASSERT(NoVictimCanBeSpared(scheduler.state(), *job, nominal));
  });
}

// Preempted jobs that come back preempt nobody who preempted them: with no other events, the
// number of preemptions is bounded.
TEST(SchedulerProperty, PreemptionsEnd) {
  Options options;
  options.failures = options.capacity_changes = false;
  ForAny([&](uint64_t seed) {
    History history(seed, options);
    for (int i = 0; i < 15; ++i) {
      history.Step();
      history.Advance(10);
    }
    int quiet = 0;
    for (int i = 0; i < 300 && quiet < 3; ++i) {
      for (const JobRef job : history.InPhase(Phase::kLeaving))
        history.scheduler().Requeue(job, RequeueCause::kPreempted, history.now());
      for (const JobRef job : history.InPhase(Phase::kRunning)) {
        if (history.scheduler().job(job).shrinking)
          history.scheduler().Resized(job, history.scheduler().job(job).size, history.now());
      }
      const auto& decisions = history.Decide();
      const bool preempts =
          std::any_of(decisions.begin(), decisions.end(),
                      [](const Decision& decision) { return decision.action == Action::kPreempt; });
      quiet = preempts || !history.InPhase(Phase::kLeaving).empty() ? 0 : quiet + 1;
    }
    RC_ASSERT(quiet == 3);
  });
}

}  // namespace
}  // namespace shoal::queue
