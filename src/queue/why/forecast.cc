#include "queue/why/forecast.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "queue/why/why.h"

namespace shoal::queue {
namespace {

// The next job of a copy that ends, stops or has shrunk.
struct NextEnd {
  JobRef job = kNoIndex;
  Millis at = kForever;
};

NextEnd FindNextEnd(const SchedulerState& state) {
  NextEnd next;
  for (const Arena& arena : state.arenas().all()) {
    for (const EndKey& key : arena.ends) {
      const JobState& job = state.job(key.job);
      const bool stops = job.phase == Phase::kLeaving || job.shrinking;
      if (job.phase != Phase::kRunning && job.phase != Phase::kLeaving) continue;
      Millis at = stops ? state.now() + state.policy().preempt_grace : key.end;
      if (!stops && at <= state.now())
        at = state.now() + std::max(Millis(1000), state.now() - job.started);
      if (at < next.at) next = {key.job, at};
    }
  }
  return next;
}

void Carry(Scheduler* copy, JobRef ref, Millis at) {
  const JobState& job = copy->job(ref);
  if (job.phase == Phase::kLeaving) {
    copy->Requeue(ref, RequeueCause::kPreempted, at);
  } else if (job.shrinking) {
    copy->Resized(ref, job.size, at);
  } else {
    copy->End(ref, at);
  }
}

}  // namespace

Forecast ForecastStart(const Scheduler& scheduler, JobRef ref, int steps) {
  Scheduler copy = scheduler;
  Millis now = copy.state().now();
  Forecast forecast;
  for (int step = 0; step < steps; ++step) {
    copy.Decide(now);
    if (copy.job(ref).phase == Phase::kRunning) {
      forecast.at = now;
      return forecast;
    }
    const NextEnd next = FindNextEnd(copy.state());
    const Millis wake = copy.NextWake();
    if (next.at >= kForever && wake >= kForever) return {};
    now = std::min(next.at, wake);
    if (next.at > wake) continue;
    const JobState& ending = copy.job(next.job);
    if (ending.phase == Phase::kRunning && !ending.shrinking)
      forecast.confidence = std::min(forecast.confidence, ending.spec.confidence);
    Carry(&copy, next.job, now);
  }
  return {};
}

std::string ForecastText(const Forecast& forecast, Millis now) {
  if (forecast.at >= kForever) return "";
  const std::string distance = DistanceText(std::max(Millis(0), forecast.at - now));
  if (forecast.confidence >= 1) return "expected to start in " + distance + " at the latest";
  return "expected to start in about " + distance + " (" +
         std::to_string(std::lround(forecast.confidence * 100)) + " % sure)";
}

Result<SubmissionTrial> TrySubmission(const Scheduler& scheduler, const JobSpec& spec, Millis now) {
  Scheduler copy = scheduler;
  TRY_ASSIGN(const JobRef ref, copy.Submit(spec, now));
  SubmissionTrial trial;
  for (const Decision& decision : copy.Decide(now)) {
    trial.preempts |= decision.beneficiary == ref;
    trial.refused |= decision.job == ref && decision.action == Action::kRefuse;
  }
  const JobState& job = copy.job(ref);
  trial.starts = job.phase == Phase::kRunning || job.phase == Phase::kAssigned;
  if (trial.starts) {
    trial.flavor = copy.state().tree().flavor_name(job.flavor);
    trial.size = job.size;
    trial.forecast.at = now;
    return trial;
  }
  trial.reason = ReasonText(copy.state(), ref, copy.ReasonOf(ref));
  for (const Change& change : ChangesThatStart(copy, ref))
    trial.changes.push_back(ChangeText(copy, ref, change));
  if (!trial.refused) trial.forecast = ForecastStart(copy, ref);
  return trial;
}

}  // namespace shoal::queue
