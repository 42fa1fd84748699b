// Properties of the scheduler over random trees, jobs and events: books, quotas, order.
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

TEST(SchedulerProperty, BooksAreExactAndGangsAreWhole) {
  ForAny([](uint64_t seed) {
    History history(seed, {});
    for (int i = 0; i < 40; ++i) {
      history.Step();
      history.Advance(10);
    }
  });
}

TEST(SchedulerProperty, AdmittedJobsNeverExceedQuotasOrCapacity) {
  Options options;
  options.capacity_changes = false;
  ForAny([&](uint64_t seed) {
    History history(seed, options);
    for (int i = 0; i < 40; ++i) {
      history.Step();
      CheckWithinLimits(history.scheduler().state());
      CheckWholes(history.scheduler().state());
      history.Advance(10);
    }
  });
}

// With true run times and one priority, nothing but the reserved job's own start ends a
// reservation, and its time never moves later.
TEST(SchedulerProperty, BackfillNeverDelaysAReservedStart) {
  Options options;
  options.exact_run_times = options.one_priority = true;
  options.preempts = options.elastic = options.limits = options.capacity_changes = false;
  ForAny([&](uint64_t seed) {
    History history(seed, options);
    std::map<std::string, Millis> promised;
    for (int i = 0; i < 60; ++i) {
      history.Step();
      const SchedulerState& state = history.scheduler().state();
      for (const Arena& arena : state.arenas().all()) {
        const Reservation& reservation = arena.reservation;
        if (reservation.job == kNoIndex) continue;
        RC_ASSERT(reservation.at < kForever);
        const auto [known, added] =
            promised.emplace(state.job(reservation.job).spec.id, reservation.at);
        RC_ASSERT(reservation.at <= known->second);
        known->second = reservation.at;
      }
      for (const Decision& decision : history.decisions()) {
        if (decision.action != Action::kAdmit) continue;
        const auto known = promised.find(state.job(decision.job).spec.id);
        if (known == promised.end()) continue;
        RC_ASSERT(history.now() <= known->second + seconds(1));
      }
      history.Advance(2);
    }
  });
}

// The same events give the same decisions, whatever numbers the jobs have inside.
TEST(SchedulerProperty, DecisionsDoNotDependOnInternalOrder) {
  ForAny([](uint64_t seed) {
    History one(seed, {});
    History two(seed, {});
    // Other numbers for the same jobs: some are used and freed before.
    for (int i = 0; i < 5; ++i) {
      JobSpec spec;
      spec.id = "x" + std::to_string(i);
      spec.queue = two.scheduler().state().policy().default_queue;
      const Result<JobRef> job = two.scheduler().Submit(spec, Millis(0));
      if (job.ok() && i % 2 == 0) two.scheduler().End(*job, Millis(0));
    }
    for (int i = 1; i < 5; i += 2) {
      const JobRef job = two.scheduler().Find("x" + std::to_string(i));
      if (job != kNoIndex) two.scheduler().End(job, Millis(0));
    }
    Options options;
    Random random(seed + 7);
    for (int i = 0; i < 60; ++i) {
      JobSpec spec;
      spec.id = "j" + std::to_string(i);
      spec.order = random.Below(20);
      const auto& nodes = one.scheduler().state().tree().nodes();
      const QuotaTree::Node& node =
          nodes[static_cast<size_t>(random.Below(static_cast<int64_t>(nodes.size())))];
      if (!node.leaf) continue;
      spec.queue = node.spec.name;
      spec.priority = static_cast<int32_t>(random.Below(2));
      spec.request.unit = {{0, 0, (1 + random.Below(5)) * 1000}};
      if (random.Chance(2)) spec.run_time = seconds(random.Below(50));
      const Millis now = seconds(i);
      RC_ASSERT(one.scheduler().Submit(spec, now).ok());
      RC_ASSERT(two.scheduler().Submit(spec, now).ok());
      const auto ended = "j" + std::to_string(random.Below(i + 1));
      for (History* history : {&one, &two}) {
        const JobRef job = history->scheduler().Find(ended);
        if (job != kNoIndex) history->scheduler().End(job, now);
      }
      const auto tell = [&](History* history) {
        std::string text;
        for (const Decision& decision : history->scheduler().Decide(now)) {
          text += std::to_string(static_cast<int>(decision.action)) + " " +
                  history->scheduler().job(decision.job).spec.id + " " +
                  std::to_string(decision.flavor) + " " + std::to_string(decision.size) + " " +
                  std::to_string(decision.at.count()) + "\n";
        }
        return text;
      };
      RC_ASSERT(tell(&one) == tell(&two));
    }
  });
}

// Every waiting job has a reason, and a job whose reason is that it fits is started by the next
// decision.
TEST(SchedulerProperty, EveryWaitingJobHasAReason) {
  ForAny([](uint64_t seed) {
    History history(seed, {});
    for (int i = 0; i < 30; ++i) {
      history.Step();
      const SchedulerState& state = history.scheduler().state();
      for (const Phase phase :
           {Phase::kWaiting, Phase::kDelayed, Phase::kImpossible, Phase::kAssigned}) {
        for (const JobRef job : history.InPhase(phase)) {
          const Reason reason = history.scheduler().ReasonOf(job);
          RC_ASSERT(reason.code != ReasonCode::kNone);
          RC_ASSERT(reason.code != ReasonCode::kFits);
          RC_ASSERT(!ReasonText(state, job, reason).empty());
        }
      }
      history.Advance(10);
    }
  });
}

}  // namespace
}  // namespace shoal::queue
