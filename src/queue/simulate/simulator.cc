#include "queue/simulate/simulator.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <queue>

#include "queue/core/run_times.h"

namespace shoal::queue {
namespace {

enum class Kind : uint8_t { kEnd, kReleased };

struct Due {
  Millis at;
  int64_t serial;  // of its making, for equal times
  JobRef job;
  int32_t generation;  // of the job; an older one is ignored
  Kind kind;

  bool operator>(const Due& other) const {
    return at != other.at ? at > other.at : serial > other.serial;
  }
};

// A job in the simulation, by its number in the scheduler.
struct Live {
  int32_t index = 0;  // in the trace
  int32_t generation = 0;
  int32_t size = 0;
  double left = 0;     // task-milliseconds of work
  double unsaved = 0;  // work since the start
  Millis since{0};     // up to when `left` and `unsaved` are right
  Millis queued{0};
};

class Simulation {
 public:
  Simulation(const Trace& trace, const Policy& policy, const SimulationOptions& options)
      : trace_(trace), options_(options), scheduler_(policy, FirstMachines(trace)) {
    result_.jobs.resize(trace.jobs.size());
    while (next_machines_ < trace.machines.size() && trace.machines[next_machines_].at <= Millis(0))
      ++next_machines_;
    for (size_t i = 0; i < trace.jobs.size(); ++i) {
      if (trace.jobs[i].cancelled < kForever) cancels_.push_back(static_cast<int32_t>(i));
    }
    std::sort(cancels_.begin(), cancels_.end(),
              [&](int32_t a, int32_t b) { return Job(a).cancelled < Job(b).cancelled; });
  }

  Result<SimulationResult> Run();

 private:
  static std::map<std::string, FlavorMachines> FirstMachines(const Trace& trace);
  const TraceJob& Job(int32_t index) const { return trace_.jobs[static_cast<size_t>(index)]; }
  std::string KindOf(const TraceJob& job) const {
    return trace_.name(job.user) + "/" + std::to_string(job.tasks);
  }
  Live& live(JobRef job) { return live_[static_cast<size_t>(job)]; }
  JobOutcome& outcome(const Live& live) { return result_.jobs[static_cast<size_t>(live.index)]; }
  Millis NextTime() const;
  Status Arrivals();
  Status Submit(int32_t index);
  void Changes();
  void Handle(const Due& due);
  void Decide();
  void Apply(const Decision& decision);
  void Start(JobRef job, int32_t size);
  void Progress(JobRef job);
  void PlanEnd(JobRef job);
  void Account();
  void Push(JobRef job, Kind kind, Millis at) {
    due_.push({at, ++serial_, job, live(job).generation, kind});
  }

  const Trace& trace_;
  const SimulationOptions options_;
  Scheduler scheduler_;
  RunTimes run_times_;
  SimulationResult result_;
  Millis now_{0};
  Millis accounted_{0};
  size_t next_job_ = 0;
  size_t next_machines_ = 0;
  size_t next_cancel_ = 0;
  std::vector<int32_t> cancels_;
  std::vector<Live> live_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  int64_t serial_ = 0;
  std::array<double, kResources> capacity_{};
};

std::map<std::string, FlavorMachines> Simulation::FirstMachines(const Trace& trace) {
  std::map<std::string, FlavorMachines> machines;
  for (const TraceMachines& change : trace.machines) {
    if (change.at <= Millis(0)) machines[change.flavor].total = change.total;
  }
  return machines;
}

Millis Simulation::NextTime() const {
  Millis next = kForever;
  if (next_job_ < trace_.jobs.size()) next = std::min(next, trace_.jobs[next_job_].submitted);
  if (next_machines_ < trace_.machines.size())
    next = std::min(next, trace_.machines[next_machines_].at);
  if (next_cancel_ < cancels_.size()) next = std::min(next, Job(cancels_[next_cancel_]).cancelled);
  if (!due_.empty()) next = std::min(next, due_.top().at);
  return std::min(next, scheduler_.NextWake());
}

Status Simulation::Submit(int32_t index) {
  const TraceJob& job = Job(index);
  JobSpec spec;
  spec.id = job.id;
  spec.queue = trace_.name(job.queue);
  spec.user = trace_.name(job.user);
  spec.team = trace_.name(job.team);
  if (job.flavor > 0) spec.flavors.push_back(trace_.name(job.flavor));
  spec.request.unit = job.per_task;
  spec.request.least = job.least;
  spec.request.most = job.most;
  spec.request.largest_task = job.per_task;
  spec.priority = job.priority;
  spec.order = index;
  spec.run_time = job.expected;
  if (options_.learn_run_times && job.expected == Millis(0))
    spec.run_time = run_times_.Expect(KindOf(job));
  spec.checkpoint = job.checkpoint;
  TRY_ASSIGN(const JobRef ref, scheduler_.Submit(std::move(spec), now_));
  if (live_.size() <= static_cast<size_t>(ref)) live_.resize(static_cast<size_t>(ref) + 1);
  Live& state = live(ref);
  state.index = index;
  ++state.generation;
  state.left = static_cast<double>(job.run_time.count()) * job.tasks;
  state.unsaved = 0;
  state.queued = now_;
  ++result_.events;
  return Status::Ok();
}

Status Simulation::Arrivals() {
  while (next_job_ < trace_.jobs.size() && trace_.jobs[next_job_].submitted <= now_)
    TRY(Submit(static_cast<int32_t>(next_job_++)));
  return Status::Ok();
}

void Simulation::Changes() {
  for (; next_machines_ < trace_.machines.size() && trace_.machines[next_machines_].at <= now_;
       ++next_machines_) {
    const TraceMachines& change = trace_.machines[next_machines_];
    FlavorMachines machines;
    machines.total = change.total;
    scheduler_.SetMachines(change.flavor, machines, now_);
    ++result_.events;
  }
  for (; next_cancel_ < cancels_.size() && Job(cancels_[next_cancel_]).cancelled <= now_;
       ++next_cancel_) {
    const JobRef job = scheduler_.Find(Job(cancels_[next_cancel_]).id);
    if (job == kNoIndex || scheduler_.job(job).phase == Phase::kRunning) continue;
    outcome(live(job)).waited += now_ - live(job).queued;
    ++live(job).generation;
    scheduler_.End(job, now_);
    ++result_.events;
  }
}

// Work done up to now.
void Simulation::Progress(JobRef job) {
  Live& state = live(job);
  const double done = static_cast<double>((now_ - state.since).count()) * state.size;
  state.left -= done;
  state.unsaved += done;
  state.since = now_;
}

void Simulation::PlanEnd(JobRef job) {
  Live& state = live(job);
  ++state.generation;
  const double left = std::max(0.0, state.left) / std::max(1, state.size);
  Push(job, Kind::kEnd, now_ + Millis(std::llround(std::ceil(left))));
}

void Simulation::Start(JobRef job, int32_t size) {
  Live& state = live(job);
  JobOutcome& result = outcome(state);
  if (result.started == kForever) result.started = now_;
  result.waited += now_ - state.queued;
  state.size = size;
  state.since = now_;
  state.unsaved = 0;
  PlanEnd(job);
}

void Simulation::Handle(const Due& due) {
  Live& state = live(due.job);
  if (due.generation != state.generation) return;
  ++result_.events;
  if (due.kind == Kind::kEnd) {
    outcome(state).ended = now_;
    result_.makespan = std::max(result_.makespan, now_);
    const TraceJob& job = Job(state.index);
    if (options_.learn_run_times && job.expected == Millis(0))
      run_times_.Learn(KindOf(job), job.run_time);
    ++state.generation;
    return scheduler_.End(due.job, now_);
  }
  if (scheduler_.job(due.job).phase == Phase::kLeaving) {
    // What was not saved is done again.
    outcome(state).lost += state.unsaved / 1000;
    state.left += state.unsaved;
    state.queued = now_;
    ++state.generation;
    scheduler_.Requeue(due.job, RequeueCause::kPreempted, now_);
  } else {
    Progress(due.job);
    state.size = scheduler_.job(due.job).size;
    scheduler_.Resized(due.job, state.size, now_);
    PlanEnd(due.job);
  }
}

void Simulation::Apply(const Decision& decision) {
  switch (decision.action) {
    case Action::kAdmit:
      ++result_.events;
      return Start(decision.job, decision.size);
    case Action::kPreempt: {
      // It saves when it is told to stop if it can save at all; a job without checkpoints loses
      // all.
      Progress(decision.job);
      Live& state = live(decision.job);
      if (Job(state.index).checkpoint > Millis(0)) {
        state.unsaved = 0;
      }
      ++outcome(state).preempted;
      ++result_.events;
      ++state.generation;
      state.size = 0;
      return Push(decision.job, Kind::kReleased, now_ + scheduler_.state().policy().preempt_grace);
    }
    case Action::kResize:
      ++result_.events;
      ++outcome(live(decision.job)).resized;
      if (decision.beneficiary != kNoIndex)
        return Push(decision.job, Kind::kReleased,
                    now_ + scheduler_.state().policy().preempt_grace);
      Progress(decision.job);
      live(decision.job).size = decision.size;
      return PlanEnd(decision.job);
    case Action::kRefuse:
      outcome(live(decision.job)).refused = true;
      ++live(decision.job).generation;
      return scheduler_.End(decision.job, now_);
    case Action::kReserve:
      return;
  }
}

void Simulation::Decide() {
  const auto begin = options_.time_decisions ? std::chrono::steady_clock::now()
                                             : std::chrono::steady_clock::time_point();
  const std::vector<Decision>& decisions = scheduler_.Decide(now_);
  if (options_.time_decisions) {
    const auto took = std::chrono::steady_clock::now() - begin;
    result_.decide_ns.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
  }
  result_.decisions += static_cast<int64_t>(decisions.size());
  for (const Decision& decision : decisions) Apply(decision);
}

// Capacity and use up to now.
void Simulation::Account() {
  const Millis last = trace_.jobs.empty() ? Millis(0) : trace_.jobs.back().submitted;
  const double seconds = static_cast<double>((std::min(now_, last) - accounted_).count()) / 1000;
  if (seconds <= 0) return;
  accounted_ = std::min(now_, last);
  result_.loaded_seconds += seconds;
  for (const FlavorCapacity& capacity : scheduler_.state().arenas().capacities()) {
    for (size_t r = 0; r < kResources; ++r) {
      result_.used[r] += seconds * static_cast<double>(capacity.held[r]);
      if (capacity.total[r] < kUnlimited)
        capacity_[r] += seconds * static_cast<double>(capacity.total[r]);
    }
  }
}

Result<SimulationResult> Simulation::Run() {
  for (Millis next = NextTime(); next != kForever; next = NextTime()) {
    // Nothing but wake-ups is left: what waits now waits for ever.
    if (next_job_ == trace_.jobs.size() && next_machines_ == trace_.machines.size() &&
        due_.empty() && next_cancel_ == cancels_.size() && next == now_)
      break;
    now_ = next;
    Account();
    Changes();
    while (!due_.empty() && due_.top().at <= now_) {
      const Due due = due_.top();
      due_.pop();
      Handle(due);
    }
    TRY(Arrivals());
    Decide();
  }
  const double seconds = std::max(1e-3, result_.loaded_seconds);
  for (size_t r = 0; r < kResources; ++r)
    result_.capacity[r] = std::llround(capacity_[r] / seconds);
  return std::move(result_);
}

}  // namespace

Result<SimulationResult> Simulate(const Trace& trace, const Policy& policy,
                                  const SimulationOptions& options) {
  return Simulation(trace, policy, options).Run();
}

}  // namespace shoal::queue
