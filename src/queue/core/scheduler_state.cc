#include "queue/core/scheduler_state.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace shoal::queue {
namespace {

size_t At(int32_t index) { return static_cast<size_t>(index); }

EndKey KeyOf(const JobState& state, JobRef job) { return {state.end, state.hold_serial, job}; }

bool Elastic(const JobState& state) { return state.spec.request.most > state.spec.request.least; }

// When the last of the jobs that stop or shrink is expected to have released its resources.
Millis LastRelease(const SchedulerState& state, const Arena& arena) {
  const bool releases = std::any_of(arena.ends.begin(), arena.ends.end(), [&](const EndKey& key) {
    const JobState& job = state.job(key.job);
    return job.real != job.charge && job.phase != Phase::kAssigned;
  });
  return releases ? state.now() + state.policy().preempt_grace : state.now();
}

}  // namespace

SchedulerState::SchedulerState(std::shared_ptr<const Policy> policy,
                               const std::vector<FlavorCapacity>& capacities)
    : policy_(std::move(policy)),
      tree_(std::make_shared<const QuotaTree>(*policy_)),
      ledger_(tree_.get(), policy_->usage_half_life, policy_->usage_period),
      arenas_(*tree_, capacities) {
  const size_t nodes = tree_->nodes().size();
  running_.resize(nodes);
  leaves_.resize(nodes);
  touched_.resize(nodes);
  touched_roots_.resize(nodes);
  versions_.resize(nodes);
  tried_.resize(nodes);
  for (size_t n = 0; n < nodes; ++n) {
    const QuotaTree::Node& node = tree_->nodes()[n];
    if (node.leaf) leaves_[At(node.root)].push_back(static_cast<NodeIndex>(n));
  }
  for (size_t f = 0; f < tree_->flavor_count(); ++f) {
    const auto flavor = static_cast<FlavorIndex>(f);
    ledger_.SetCapacity(flavor, arenas_.capacity(flavor).total);
  }
}

void SchedulerState::Advance(Millis now) {
  now_ = std::max(now_, now);
  ledger_.Advance(now_);
}

JobRef SchedulerState::AddJob(JobSpec spec) {
  JobRef ref = kNoIndex;
  if (free_.empty()) {
    jobs_.emplace_back();
    ref = static_cast<JobRef>(jobs_.size() - 1);
  } else {
    ref = free_.back();
    free_.pop_back();
    job(ref) = {};
  }
  by_id_.emplace(spec.id, ref);
  JobState& state = job(ref);
  state.spec = std::move(spec);
  state.serial = next_serial_++;
  state.submitted = now_;
  return ref;
}

void SchedulerState::RemoveJob(JobRef ref) {
  by_id_.erase(job(ref).spec.id);
  job(ref).phase = Phase::kFree;
  free_.push_back(ref);
}

void SchedulerState::TakeJobs(const SchedulerState& other) {
  now_ = other.now_;
  jobs_ = other.jobs_;
  free_ = other.free_;
  by_id_ = other.by_id_;
  ready_ = other.ready_;
  next_serial_ = other.next_serial_;
  ledger_.TakeHistory(other.ledger_);
  std::vector<JobRef> holders;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    JobState& state = jobs_[i];
    if (state.phase == Phase::kFree) continue;
    state.leaf = tree_->FindNode(state.spec.queue);
    state.lane = lanes_.Find(*tree_, state.leaf, state.spec.user, state.spec.team);
    if (state.holds()) holders.push_back(static_cast<JobRef>(i));
  }
  std::sort(holders.begin(), holders.end(),
            [this](JobRef a, JobRef b) { return job(a).hold_serial < job(b).hold_serial; });
  for (const JobRef ref : holders) {
    const JobState held = job(ref);
    BeginHold(ref, tree_->FindFlavor(other.tree_->flavor_name(held.flavor)), held.charge, held.real,
              held.end);
  }
}

JobRef SchedulerState::Find(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? kNoIndex : found->second;
}

void SchedulerState::EnterLine(JobRef ref) {
  JobState& state = job(ref);
  state.phase = Phase::kWaiting;
  lanes_.lines().Insert(lanes_.lane(state.lane).line, ref, state);
  Touch(state.leaf);
}

void SchedulerState::LeaveLine(JobRef ref) {
  const JobState& state = job(ref);
  lanes_.lines().Erase(lanes_.lane(state.lane).line, ref);
  for (const FlavorIndex flavor : tree_->node(state.leaf).flavors) {
    Arena* const arena = arenas_.Of(flavor, state.leaf);
    if (arena == nullptr || arena->reservation.job != ref) continue;
    DropReservation(arena);
    TouchArena(*arena);
  }
}

void SchedulerState::BeginHold(JobRef ref, FlavorIndex flavor, const Amounts& charge,
                               const Amounts& real, Millis end) {
  JobState& state = job(ref);
  state.flavor = flavor;
  state.hold_serial = next_hold_serial_++;
  state.end = end;
  state.charge = state.real = {};
  Arena& arena = *arenas_.Of(flavor, state.leaf);
  const EndKey key = KeyOf(state, ref);
  arena.ends.insert(std::upper_bound(arena.ends.begin(), arena.ends.end(), key), key);
  arena.elastic += Elastic(state) ? 1 : 0;
  state.running_at = static_cast<int32_t>(running_[At(state.leaf)].size());
  running_[At(state.leaf)].push_back(ref);
  lanes_.CountJob(state.lane, 1);
  SetCharge(ref, charge, real);
}

void SchedulerState::SetCharge(JobRef ref, const Amounts& charge, const Amounts& real) {
  JobState& state = job(ref);
  Arena& arena = *arenas_.Of(state.flavor, state.leaf);
  FlavorCapacity& capacity = arenas_.capacity(state.flavor);
  const bool frees = !state.charge.FitsIn(charge) || !state.real.FitsIn(real);
  if (state.real != real) {
    ledger_.DischargeReal(state.flavor, state.leaf, state.real);
    ledger_.ChargeReal(state.flavor, state.leaf, real);
    capacity.real += real - state.real;
    state.real = real;
  }
  if (state.charge != charge) {
    ledger_.Discharge(state.flavor, state.leaf, state.charge);
    ledger_.Charge(state.flavor, state.leaf, charge);
    capacity.held += charge - state.charge;
    lanes_.Discharge(state.lane, state.charge);
    lanes_.Charge(state.lane, charge);
    if (InShadow(arena, state)) {
      Shadow(&arena, state, state.charge, false);
      Shadow(&arena, state, charge, true);
    }
    if (!state.charge.FitsIn(charge)) ++arena.reservation.releases;
    state.charge = charge;
  }
  if (frees) TouchArena(arena);
}

void SchedulerState::SetEnd(JobRef ref, Millis end) {
  JobState& state = job(ref);
  if (state.end == end) return;
  Arena& arena = *arenas_.Of(state.flavor, state.leaf);
  if (InShadow(arena, state)) {
    Shadow(&arena, state, state.charge, false);
    TouchArena(arena);
  }
  const auto found = std::lower_bound(arena.ends.begin(), arena.ends.end(), KeyOf(state, ref));
  arena.ends.erase(found);
  state.end = end;
  const EndKey key = KeyOf(state, ref);
  arena.ends.insert(std::upper_bound(arena.ends.begin(), arena.ends.end(), key), key);
  if (InShadow(arena, state)) Shadow(&arena, state, state.charge, true);
}

void SchedulerState::EndHold(JobRef ref) {
  SetCharge(ref, {}, {});
  JobState& state = job(ref);
  Arena& arena = *arenas_.Of(state.flavor, state.leaf);
  const auto found = std::lower_bound(arena.ends.begin(), arena.ends.end(), KeyOf(state, ref));
  arena.ends.erase(found);
  arena.elastic -= Elastic(state) ? 1 : 0;
  std::vector<JobRef>& running = running_[At(state.leaf)];
  running[At(state.running_at)] = running.back();
  job(running.back()).running_at = state.running_at;
  running.pop_back();
  lanes_.CountJob(state.lane, -1);
  TouchArena(arena);
  state.running_at = kNoIndex;
  state.end = kForever;
}

Amounts SchedulerState::Available(FlavorIndex flavor, NodeIndex leaf) const {
  const FlavorCapacity& capacity = arenas_.capacity(flavor);
  Amounts available = tree_->Available(flavor, leaf, ledger_.usage(flavor));
  for (size_t r = 0; r < kResources; ++r) {
    if (capacity.total[r] < kUnlimited)
      available[r] = std::min(available[r], capacity.total[r] - capacity.held[r]);
  }
  return Min(available, RealAvailable(*this, flavor, leaf));
}

Amounts RealAvailable(const SchedulerState& state, FlavorIndex flavor, NodeIndex leaf) {
  const FlavorCapacity& capacity = state.arenas().capacity(flavor);
  Amounts available = state.tree().Available(flavor, leaf, state.ledger().real(flavor));
  for (size_t r = 0; r < kResources; ++r) {
    if (capacity.total[r] < kUnlimited)
      available[r] = std::min(available[r], capacity.total[r] - capacity.real[r]);
  }
  return available;
}

Amounts SchedulerState::ShadowAvailable(const Arena& arena, NodeIndex leaf) const {
  const FlavorCapacity& capacity = arenas_.capacity(arena.flavor);
  Amounts available = tree_->Available(arena.flavor, leaf, arena.reservation.shadow);
  for (size_t r = 0; r < kResources; ++r) {
    if (capacity.total[r] < kUnlimited)
      available[r] = std::min(available[r], capacity.total[r] - arena.reservation.shadow_held[r]);
  }
  return available;
}

bool SchedulerState::InShadow(const Arena& arena, const JobState& state) const {
  if (arena.reservation.job == kNoIndex) return false;
  return arena.reservation.cut < EndKey{state.end, state.hold_serial, kNoIndex};
}

void SchedulerState::Shadow(Arena* arena, const JobState& state, const Amounts& added,
                            bool charge) {
  Reservation& reservation = arena->reservation;
  if (charge) {
    tree_->Charge(arena->flavor, state.leaf, added, &reservation.shadow);
    reservation.shadow_held += added;
  } else {
    tree_->Discharge(arena->flavor, state.leaf, added, &reservation.shadow);
    reservation.shadow_held -= added;
  }
}

// A job that runs longer than expected is expected to run twice as long as it has so far.
void SchedulerState::PostponeOverruns(Arena* arena) {
  std::vector<EndKey> late;
  for (const EndKey& key : arena->ends) {
    if (key.end > now_) break;
    late.push_back(key);
  }
  if (late.empty()) return;
  arena->ends.erase(arena->ends.begin(), arena->ends.begin() + static_cast<int64_t>(late.size()));
  for (EndKey& key : late) {
    JobState& state = job(key.job);
    state.end = now_ + std::max(Millis(1000), now_ - state.started);
    key.end = state.end;
  }
  arena->ends.insert(arena->ends.end(), late.begin(), late.end());
  std::sort(arena->ends.begin(), arena->ends.end());
}

bool SchedulerState::Reserve(Arena* arena, JobRef ref) {
  const JobState& state = job(ref);
  const Amounts demand = state.spec.request.Least();
  const bool missed = arena->reservation.job == ref && arena->reservation.missed;
  DropReservation(arena);
  PostponeOverruns(arena);
  Reservation made;
  made.job = ref;
  made.missed = missed;
  made.shadow = ledger_.usage(arena->flavor);
  made.shadow_held = arenas_.capacity(arena->flavor).held;
  arena->reservation = std::move(made);
  Reservation& reservation = arena->reservation;
  reservation.at = now_;
  reservation.cut = {Millis(-1), 0, kNoIndex};
  bool fits = demand.FitsIn(ShadowAvailable(*arena, state.leaf));
  for (size_t i = 0; i < arena->ends.size(); ++i) {
    const EndKey& key = arena->ends[i];
    if (fits && (key.end == kForever || key.end > reservation.at)) break;
    const JobState& ending = job(key.job);
    Shadow(arena, ending, ending.charge, false);
    reservation.at = key.end;
    reservation.cut = {key.end, key.end == kForever ? key.serial : kForever.count(), kNoIndex};
    fits = fits || demand.FitsIn(ShadowAvailable(*arena, state.leaf));
  }
  if (!fits) {
    DropReservation(arena);
    return false;
  }
  if (reservation.at == now_ && !demand.FitsIn(RealAvailable(*this, arena->flavor, state.leaf)))
    reservation.at = LastRelease(*this, *arena);
  Shadow(arena, state, demand, true);
  return true;
}

void SchedulerState::Touch(NodeIndex leaf) {
  if (touched_[At(leaf)]) return;
  touched_[At(leaf)] = true;
  touched_list_.push_back(leaf);
}

void SchedulerState::TouchArena(const Arena& arena) {
  for (const NodeIndex root : arena.roots) {
    ++versions_[At(root)];
    if (touched_roots_[At(root)]) continue;
    touched_roots_[At(root)] = true;
    touched_root_list_.push_back(root);
  }
}

// Leaves with waiting jobs; no leaf twice.
std::vector<NodeIndex> SchedulerState::TakeTouched() {
  std::vector<NodeIndex> leaves;
  for (const NodeIndex root : touched_root_list_) {
    touched_roots_[At(root)] = false;
    for (const NodeIndex leaf : leaves_[At(root)]) touched_[At(leaf)] = false;
    for (const NodeIndex leaf : leaves_[At(root)]) {
      if (lanes_.Waiting(leaf) > 0) leaves.push_back(leaf);
    }
  }
  touched_root_list_.clear();
  for (const NodeIndex leaf : touched_list_) {
    if (touched_[At(leaf)] && lanes_.Waiting(leaf) > 0) leaves.push_back(leaf);
    touched_[At(leaf)] = false;
  }
  touched_list_.clear();
  return leaves;
}

}  // namespace shoal::queue
