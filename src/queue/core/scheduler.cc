#include "queue/core/scheduler.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "queue/core/round.h"

namespace shoal::queue {
namespace {

std::vector<FlavorCapacity> Capacities(const Policy& policy,
                                       const std::map<std::string, FlavorMachines>& machines) {
  std::vector<FlavorCapacity> capacities(policy.flavors.size());
  for (size_t f = 0; f < policy.flavors.size(); ++f) {
    const auto found = machines.find(policy.flavors[f].name);
    if (found == machines.end()) continue;
    capacities[f].total = found->second.total;
    capacities[f].largest_node = found->second.largest_node;
  }
  return capacities;
}

bool Elastic(const Request& request) { return request.most > request.least; }

// Of a job that may hold resources; the caller sets what it is charged.
void SetBounds(SchedulerState* state, JobRef ref, const Request& request) {
  JobState& job = state->job(ref);
  const int change = (Elastic(request) ? 1 : 0) - (Elastic(job.spec.request) ? 1 : 0);
  job.spec.request = request;
  if (job.holds()) state->arenas().Of(job.flavor, job.leaf)->elastic += change;
}

// Different for each job and attempt, so that jobs that failed together do not meet again.
Millis Spread(Millis distance, const JobState& job) {
  uint64_t hash = 1469598103934665603ULL + static_cast<uint64_t>(job.attempts);
  for (const char c : job.spec.id) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211ULL;
  return distance + Millis(static_cast<int64_t>(hash % 1024) * distance.count() / 4096);
}

}  // namespace

Scheduler::Scheduler(const Policy& policy, const std::map<std::string, FlavorMachines>& machines)
    : policy_(std::make_shared<const Policy>(policy)),
      state_(policy_, Capacities(policy, machines)) {}

Result<JobRef> Scheduler::Submit(JobSpec spec, Millis now) {
  state_.Advance(now);
  if (state_.Find(spec.id) != kNoIndex)
    return AlreadyExists("job " + spec.id + " is in the queue already");
  if (spec.queue.empty()) spec.queue = state_.policy().default_queue;
  const NodeIndex leaf = state_.tree().FindNode(spec.queue);
  if (leaf == kNoIndex) return NotFound("there is no queue '" + spec.queue + "'");
  if (!state_.tree().node(leaf).leaf)
    return NotFound("queue '" + spec.queue +
                    "' has queues below it and takes no jobs itself; name one of those");
  const JobRef ref = state_.AddJob(std::move(spec));
  state_.job(ref).leaf = leaf;
  Classify(ref);
  return ref;
}

// Puts a job that holds nothing into its line, or aside if it is impossible.
void Scheduler::Classify(JobRef ref) {
  JobState& job = state_.job(ref);
  job.lane = state_.lanes().Find(state_.tree(), job.leaf, job.spec.user, job.spec.team);
  job.flavor_mask = AllowedFlavors(state_, job);
  if (Impossible(state_, job).code != ReasonCode::kNone) {
    job.phase = Phase::kImpossible;
    if (!job.refused) state_.impossible().push_back(ref);
    return;
  }
  state_.EnterLine(ref);
}

Status Scheduler::Restore(JobRef ref, const std::string& flavor, int32_t size, Millis started) {
  const FlavorIndex index = state_.tree().FindFlavor(flavor);
  JobState& job = state_.job(ref);
  if (index == kNoIndex || state_.arenas().Of(index, job.leaf) == nullptr)
    return InvalidArgument("job " + job.spec.id + " runs on the flavor '" + flavor +
                           "', which its queue does not use");
  if (job.phase == Phase::kWaiting) state_.LeaveLine(ref);
  job.phase = Phase::kRunning;
  job.size = size;
  job.started = job.saved = job.resized = started;
  const Millis end = job.spec.run_time > Millis(0) ? started + job.spec.run_time : kForever;
  state_.BeginHold(ref, index, job.spec.request.At(size), job.spec.request.At(size), end);
  return Status::Ok();
}

// Ends what the job holds and what it waits for.
void Scheduler::Release(JobRef ref) {
  const Phase phase = state_.job(ref).phase;
  if (phase == Phase::kWaiting) {
    state_.LeaveLine(ref);
    state_.Touch(state_.job(ref).leaf);
  }
  if (phase == Phase::kDelayed) std::erase(delayed_, ref);
  if (!state_.job(ref).holds()) return;
  if (phase == Phase::kAssigned) LetGo(ref);
  std::erase(kept_, ref);
  state_.EndHold(ref);
  ReleasedFor(ref);
}

// The victims of a job that does not start now stop all the same.
void Scheduler::LetGo(JobRef ref) {
  JobState& job = state_.job(ref);
  std::erase(state_.ready(), ref);
  if (std::exchange(job.victims, 0) == 0) return;
  for (const EndKey& key : state_.arenas().Of(job.flavor, job.leaf)->ends) {
    if (state_.job(key.job).beneficiary == ref) state_.job(key.job).beneficiary = kNoIndex;
  }
}

// A victim has released what it held for another job.
void Scheduler::ReleasedFor(JobRef victim) {
  const JobRef ref = std::exchange(state_.job(victim).beneficiary, kNoIndex);
  if (ref != kNoIndex && --state_.job(ref).victims == 0) state_.ready().push_back(ref);
}

void Scheduler::End(JobRef ref, Millis now) {
  state_.Advance(now);
  Release(ref);
  state_.RemoveJob(ref);
}

void Scheduler::Requeue(JobRef ref, RequeueCause cause, Millis now) {
  state_.Advance(now);
  Release(ref);
  JobState& job = state_.job(ref);
  job.size = 0;
  job.flavor = kNoIndex;
  job.shrinking = false;
  if (cause != RequeueCause::kNotGathered) {
    job.attempts = 0;
    return Classify(ref);
  }
  const Policy& policy = state_.policy();
  const int64_t factor = int64_t{1} << std::min(job.attempts, 20);
  ++job.attempts;
  job.not_before =
      state_.now() + Spread(std::min(policy.requeue_first * factor, policy.requeue_most), job);
  job.phase = Phase::kDelayed;
  delayed_.push_back(ref);
}

void Scheduler::Resized(JobRef ref, int32_t size, Millis now) {
  state_.Advance(now);
  JobState& job = state_.job(ref);
  if (!job.holds() || job.phase == Phase::kLeaving) return;
  job.size = size;
  job.resized = state_.now();
  job.shrinking = false;
  const Amounts held = job.spec.request.At(size);
  state_.SetCharge(ref, held, job.phase == Phase::kAssigned ? Amounts{} : held);
  ReleasedFor(ref);
}

void Scheduler::Keep(JobRef ref, Millis until, Millis now) {
  state_.Advance(now);
  JobState& job = state_.job(ref);
  if (job.phase != Phase::kLeaving && !job.shrinking) return;
  if (const JobRef other = std::exchange(job.beneficiary, kNoIndex); other != kNoIndex) {
    LetGo(other);
    state_.EndHold(other);
    state_.job(other).size = 0;
    state_.job(other).flavor = kNoIndex;
    Classify(other);
  }
  if (std::exchange(job.shrinking, false)) job.size = std::max(job.size, job.whole);
  job.phase = Phase::kRunning;
  job.kept_until = until;
  if (std::find(kept_.begin(), kept_.end(), ref) == kept_.end()) kept_.push_back(ref);
  state_.SetCharge(ref, job.real, job.real);
  state_.SetEnd(ref, job.spec.run_time > Millis(0) ? job.started + job.spec.run_time : kForever);
}

void Scheduler::SetRequest(JobRef ref, const Request& request, int32_t size, Millis now) {
  state_.Advance(now);
  JobState& job = state_.job(ref);
  const Phase phase = job.phase;
  if (phase == Phase::kWaiting) state_.LeaveLine(ref);
  // The place in its arena's list of elastic jobs depends on the bounds.
  SetBounds(&state_, ref, request);
  if (phase == Phase::kWaiting || phase == Phase::kImpossible) {
    std::erase(state_.impossible(), ref);
    return Classify(ref);
  }
  if (phase != Phase::kRunning) return;
  const Amounts held = request.At(size);
  const bool gives = size < job.size;
  if (gives && !job.shrinking) job.whole = job.size;
  job.shrinking |= gives;
  job.size = size;
  job.resized = state_.now();
  state_.SetCharge(ref, held, job.shrinking ? job.real : held);
}

void Scheduler::Saved(JobRef ref, Millis now) {
  state_.Advance(now);
  state_.job(ref).saved = state_.now();
}

void Scheduler::SetRunTime(JobRef ref, Millis run_time, double confidence, Millis now) {
  state_.Advance(now);
  JobState& job = state_.job(ref);
  const bool waits = job.phase == Phase::kWaiting;
  if (waits) state_.LeaveLine(ref);
  job.spec.run_time = run_time;
  job.spec.confidence = confidence;
  if (waits) state_.EnterLine(ref);
  if (job.phase == Phase::kRunning)
    state_.SetEnd(ref, run_time > Millis(0) ? job.started + run_time : kForever);
}

void Scheduler::SetMachines(const std::string& flavor, const FlavorMachines& machines, Millis now) {
  state_.Advance(now);
  const FlavorIndex index = state_.tree().FindFlavor(flavor);
  if (index == kNoIndex) return;
  std::vector<FlavorCapacity> capacities = state_.arenas().capacities();
  FlavorCapacity& capacity = capacities[static_cast<size_t>(index)];
  capacity.total = machines.total;
  capacity.largest_node = machines.largest_node;
  Rebuild(policy_, capacities);
}

Status Scheduler::SetPolicy(const Policy& policy, Millis now) {
  state_.Advance(now);
  const QuotaTree tree(policy);
  std::string stranded;
  int count = 0;
  for (size_t i = 0; i < state_.job_slots(); ++i) {
    const JobState& job = state_.job(static_cast<JobRef>(i));
    if (job.phase == Phase::kFree) continue;
    const NodeIndex leaf = tree.FindNode(job.spec.queue);
    std::string why;
    if (leaf == kNoIndex || !tree.node(leaf).leaf) {
      why = "queue '" + job.spec.queue + "'";
    } else if (job.holds()) {
      const std::string& name = state_.tree().flavor_name(job.flavor);
      const std::vector<FlavorIndex>& flavors = tree.node(leaf).flavors;
      const FlavorIndex flavor = tree.FindFlavor(name);
      if (flavor == kNoIndex || std::find(flavors.begin(), flavors.end(), flavor) == flavors.end())
        why = "flavor '" + name + "' in queue '" + job.spec.queue + "'";
    }
    if (why.empty() || ++count > 5) continue;
    stranded +=
        (stranded.empty() ? "" : ", ") + job.spec.name + " (" + job.spec.id + ", " + why + ")";
  }
  if (count > 5) stranded += " and " + std::to_string(count - 5) + " more";
  if (count > 0)
    return FailedPrecondition("the policy would strand jobs: " + stranded +
                              "; keep their queues and flavors, set `mode: drain` and wait until "
                              "they have left, or stop them");
  std::vector<FlavorCapacity> capacities(policy.flavors.size());
  for (size_t f = 0; f < policy.flavors.size(); ++f) {
    const FlavorIndex old = state_.tree().FindFlavor(policy.flavors[f].name);
    if (old != kNoIndex) capacities[f] = state_.arenas().capacity(old);
  }
  Rebuild(std::make_shared<const Policy>(policy), capacities);
  return Status::Ok();
}

// A new state with the same jobs.
void Scheduler::Rebuild(std::shared_ptr<const Policy> policy,
                        const std::vector<FlavorCapacity>& capacities) {
  SchedulerState old = std::move(state_);
  policy_ = policy;
  state_ = SchedulerState(std::move(policy), capacities);
  state_.TakeJobs(old);
  for (size_t i = 0; i < state_.job_slots(); ++i) {
    const auto ref = static_cast<JobRef>(i);
    JobState& job = state_.job(ref);
    if (job.phase != Phase::kWaiting && job.phase != Phase::kImpossible) continue;
    // A job that waits already is not refused when machines vanish; it waits for them.
    job.refused = true;
    Classify(ref);
  }
  for (size_t n = 0; n < state_.tree().nodes().size(); ++n) state_.Touch(static_cast<NodeIndex>(n));
  for (const Arena& arena : state_.arenas().all()) state_.TouchArena(arena);
}

const std::vector<Decision>& Scheduler::Decide(Millis now) {
  state_.Advance(now);
  decisions_.clear();
  for (const MaintenanceWindow& window : state_.policy().windows) {
    if (window.until <= decided_ || window.until > state_.now()) continue;
    for (const Arena& arena : state_.arenas().all()) state_.TouchArena(arena);
  }
  decided_ = state_.now();
  std::vector<JobRef> due;
  std::erase_if(delayed_, [&](JobRef ref) {
    const bool back = state_.job(ref).not_before <= state_.now();
    if (back) due.push_back(ref);
    return back;
  });
  for (const JobRef ref : due) Classify(ref);
  std::erase_if(kept_, [&](JobRef ref) {
    const JobState& job = state_.job(ref);
    const bool free = job.kept_until <= state_.now();
    if (free && job.holds()) state_.TouchArena(*state_.arenas().Of(job.flavor, job.leaf));
    return free;
  });
  Round(&state_, &decisions_).Run();
  for (Decision& decision : decisions_) {
    if (decision.action == Action::kRefuse)
      decision.reason = Impossible(state_, state_.job(decision.job));
  }
  return decisions_;
}

Millis Scheduler::NextWake() const {
  Millis wake = kForever;
  const auto consider = [&](Millis at) {
    if (at > state_.now()) wake = std::min(wake, at);
  };
  for (const JobRef ref : delayed_) consider(state_.job(ref).not_before);
  for (const JobRef ref : kept_) consider(state_.job(ref).kept_until);
  for (const MaintenanceWindow& window : state_.policy().windows) {
    consider(window.from);
    consider(window.until);
  }
  for (const Arena& arena : state_.arenas().all()) {
    if (arena.reservation.job != kNoIndex) consider(arena.reservation.at);
    if (arena.elastic == 0 || !state_.policy().grow) continue;
    for (const EndKey& key : arena.ends) {
      const JobState& job = state_.job(key.job);
      if (job.phase == Phase::kRunning && job.size < job.spec.request.most)
        consider(job.resized + state_.policy().resize_pause);
    }
  }
  return wake;
}

Reason Scheduler::ReasonOf(JobRef job) const { return Explain(state_, job); }

}  // namespace shoal::queue
