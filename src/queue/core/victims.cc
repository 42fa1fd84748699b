#include "queue/core/victims.h"

#include <algorithm>
#include <tuple>

namespace shoal::queue {
namespace {

// What a job may do with another.
enum class Taking : uint8_t { kNothing, kPreempt, kReclaim };

struct Candidate {
  JobRef job = kNoIndex;
  Taking taking = Taking::kNothing;
  double lost = 0;  // work since the last checkpoint, as dominant share · seconds
};

// Usage of the arena as it would be after some victims.
class Trial {
 public:
  Trial(const SchedulerState& state, JobRef job, FlavorIndex flavor)
      : state_(state),
        job_(state.job(job)),
        demand_(job_.spec.request.Least()),
        flavor_(flavor),
        arena_(*state.arenas().Of(flavor, job_.leaf)),
        usage_(state.ledger().usage(flavor)),
        held_(state.arenas().capacity(flavor).held) {
    const Reservation& reservation = arena_.reservation;
    shadowed_ = reservation.job != kNoIndex && reservation.job != job &&
                !Overrides(state.job(reservation.job));
    if (!shadowed_) return;
    shadow_ = reservation.shadow;
    shadow_held_ = reservation.shadow_held;
  }

  void Take(const JobState& victim, const Amounts& amounts);
  void GiveBack(const JobState& victim, const Amounts& amounts);
  // True if the job fits without delaying a reserved job that it may not displace.
  bool Fits() const;
  // True if the job's side stays within its nominal quota where its path and the other's part, and
  // the other's side borrows now.
  bool MayReclaim(const JobState& other) const;
  const Arena& arena() const { return arena_; }

 private:
  bool FitsIn(const QuotaTree::Usage& usage, const Amounts& held) const;
  bool Overrides(const JobState& reserved) const;
  // True if the node uses more than its nominal quota of a resource that the job asks for, with
  // `added` on top.
  bool Exceeds(NodeIndex node, const Amounts& added) const;
  size_t Parting(const JobState& other) const;

  const SchedulerState& state_;
  const JobState& job_;
  const Amounts demand_;
  const FlavorIndex flavor_;
  const Arena& arena_;
  QuotaTree::Usage usage_;
  Amounts held_;
  bool shadowed_ = false;
  QuotaTree::Usage shadow_;
  Amounts shadow_held_;
};

void Trial::Take(const JobState& victim, const Amounts& amounts) {
  state_.tree().Discharge(flavor_, victim.leaf, amounts, &usage_);
  held_ -= amounts;
  if (!shadowed_ || !state_.InShadow(arena_, victim)) return;
  state_.tree().Discharge(flavor_, victim.leaf, amounts, &shadow_);
  shadow_held_ -= amounts;
}

void Trial::GiveBack(const JobState& victim, const Amounts& amounts) {
  state_.tree().Charge(flavor_, victim.leaf, amounts, &usage_);
  held_ += amounts;
  if (!shadowed_ || !state_.InShadow(arena_, victim)) return;
  state_.tree().Charge(flavor_, victim.leaf, amounts, &shadow_);
  shadow_held_ += amounts;
}

bool Trial::FitsIn(const QuotaTree::Usage& usage, const Amounts& held) const {
  if (!demand_.FitsIn(state_.tree().Available(flavor_, job_.leaf, usage))) return false;
  const Amounts& total = state_.arenas().capacity(flavor_).total;
  for (size_t r = 0; r < kResources; ++r) {
    if (total[r] < kUnlimited && demand_[r] > std::max<int64_t>(0, total[r] - held[r]))
      return false;
  }
  return true;
}

bool Trial::Fits() const {
  return FitsIn(usage_, held_) && (!shadowed_ || FitsIn(shadow_, shadow_held_));
}

bool Trial::Exceeds(NodeIndex node, const Amounts& added) const {
  const NodeIndex root = state_.tree().node(node).root;
  const Amounts& subtree = state_.tree().cell(flavor_, node).subtree;
  for (size_t r = 0; r < kResources; ++r) {
    if (demand_[r] > 0 && state_.tree().Limits(flavor_, root, r) &&
        usage_[static_cast<size_t>(node)][r] + added[r] > subtree[r])
      return true;
  }
  return false;
}

// The level at which the paths part; 0 if they have nothing in common, or are the same queue.
size_t Trial::Parting(const JobState& other) const {
  const std::vector<NodeIndex>& mine = state_.tree().node(job_.leaf).path;
  const std::vector<NodeIndex>& theirs = state_.tree().node(other.leaf).path;
  size_t level = 0;
  while (level < mine.size() && level < theirs.size() && mine[level] == theirs[level]) ++level;
  return level == mine.size() || level == theirs.size() ? 0 : level;
}

bool Trial::MayReclaim(const JobState& other) const {
  const size_t level = Parting(other);
  if (level == 0) return false;
  return !Exceeds(state_.tree().node(job_.leaf).path[level], demand_) &&
         Exceeds(state_.tree().node(other.leaf).path[level], {}) && Exceeds(other.leaf, {});
}

// A job takes its queue's nominal quota even if it was kept free for one that would borrow it.
bool Trial::Overrides(const JobState& reserved) const {
  const size_t level = Parting(reserved);
  if (level == 0 || state_.tree().node(job_.leaf).spec.reclaim != PreemptRule::kAny) return false;
  return !Exceeds(state_.tree().node(job_.leaf).path[level], demand_) &&
         Exceeds(state_.tree().node(reserved.leaf).path[level], reserved.spec.request.Least());
}

// Finds the victims on one flavor.
class Search {
 public:
  Search(const SchedulerState& state, JobRef job, FlavorIndex flavor)
      : state_(state),
        ref_(job),
        job_(state.job(job)),
        flavor_(flavor),
        trial_(state, job, flavor) {}

  std::optional<VictimPlan> Run();

 private:
  void Gather();
  Taking MayTake(const JobState& victim) const;
  Amounts Surplus(const JobState& victim) const;
  Millis Unsaved(const JobState& victim) const;
  void Order(std::vector<Candidate>* candidates) const;
  bool TakeUntilFits();
  void PreferSingle();
  void Spare();
  VictimPlan Plan();
  void TakeAll(const Candidate& victim);
  void GiveBackAll(const Candidate& victim);

  const SchedulerState& state_;
  const JobRef ref_;
  const JobState& job_;
  const FlavorIndex flavor_;
  Trial trial_;
  std::vector<JobRef> surplus_;        // elastic jobs, which are shrunk to their minimum
  std::vector<Candidate> candidates_;  // that may be preempted
  std::vector<Candidate> taken_;
};

Taking Search::MayTake(const JobState& victim) const {
  const QueueSpec& spec = state_.tree().node(job_.leaf).spec;
  const bool lower = victim.priority() < job_.priority();
  if (victim.leaf == job_.leaf) {
    return lower && spec.preempt_within != PreemptRule::kNever ? Taking::kPreempt
                                                               : Taking::kNothing;
  }
  if (spec.reclaim == PreemptRule::kNever) return Taking::kNothing;
  if (spec.reclaim == PreemptRule::kLowerPriority && !lower) return Taking::kNothing;
  return trial_.MayReclaim(victim) ? Taking::kReclaim : Taking::kNothing;
}

// Since the last checkpoint, whether it was reported or is due by the job's interval.
Millis Search::Unsaved(const JobState& victim) const {
  const Millis since = state_.now() - victim.saved;
  const Millis interval = victim.spec.checkpoint;
  return interval > Millis(0) ? std::min(since, (state_.now() - victim.started) % interval) : since;
}

Amounts Search::Surplus(const JobState& victim) const {
  return victim.spec.request.unit * (victim.size - victim.spec.request.least);
}

void Search::Gather() {
  for (const EndKey& key : trial_.arena().ends) {
    const JobState& victim = state_.job(key.job);
    if (victim.phase != Phase::kRunning || victim.shrinking) continue;
    if (state_.now() < victim.kept_until) continue;
    if (victim.size > victim.spec.request.least) surplus_.push_back(key.job);
    const Taking taking = MayTake(victim);
    if (taking == Taking::kNothing) continue;
    const double seconds = static_cast<double>(Unsaved(victim).count()) / 1000;
    const double part = state_.ledger().Dominant(flavor_, victim.leaf, victim.charge);
    candidates_.push_back({key.job, taking, std::max(0.0, seconds) * part});
  }
  Order(&candidates_);
}

// Those of borrowing queues first, then lower priority, least lost work, latest start.
void Search::Order(std::vector<Candidate>* candidates) const {
  const auto key = [this](const Candidate& candidate) {
    const JobState& victim = state_.job(candidate.job);
    return std::tuple(candidate.taking == Taking::kReclaim ? 0 : 1, victim.priority(),
                      candidate.lost, -victim.hold_serial);
  };
  std::sort(candidates->begin(), candidates->end(),
            [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
}

void Search::TakeAll(const Candidate& victim) {
  const JobState& state = state_.job(victim.job);
  trial_.Take(state, state.spec.request.At(std::min(state.size, state.spec.request.least)));
}

void Search::GiveBackAll(const Candidate& victim) {
  const JobState& state = state_.job(victim.job);
  trial_.GiveBack(state, state.spec.request.At(std::min(state.size, state.spec.request.least)));
}

bool Search::TakeUntilFits() {
  for (const Candidate& candidate : candidates_) {
    // A queue that borrowed may have ended to do so by the victims before.
    const JobState& victim = state_.job(candidate.job);
    if (candidate.taking == Taking::kReclaim && !trial_.MayReclaim(victim)) continue;
    TakeAll(candidate);
    taken_.push_back(candidate);
    if (trial_.Fits()) return true;
  }
  return false;
}

// One victim of no higher priority that loses less work than all of the chosen ones together.
void Search::PreferSingle() {
  if (taken_.size() < 2) return;
  double lost = 0;
  int32_t priority = std::numeric_limits<int32_t>::min();
  for (const Candidate& victim : taken_) {
    lost += victim.lost;
    priority = std::max(priority, state_.job(victim.job).priority());
  }
  std::vector<Candidate> before = std::move(taken_);
  taken_.clear();
  for (auto victim = before.rbegin(); victim != before.rend(); ++victim) GiveBackAll(*victim);
  std::optional<Candidate> best;
  for (const Candidate& candidate : candidates_) {
    const JobState& victim = state_.job(candidate.job);
    if (victim.priority() > priority || candidate.lost >= (best ? best->lost : lost)) continue;
    TakeAll(candidate);
    if (trial_.Fits()) best = candidate;
    GiveBackAll(candidate);
  }
  taken_ = best ? std::vector<Candidate>{*best} : std::move(before);
  for (const Candidate& victim : taken_) TakeAll(victim);
}

// Gives back those that are not needed, those that would lose the most work first.
void Search::Spare() {
  std::vector<Candidate> needed = taken_;
  std::stable_sort(needed.begin(), needed.end(),
                   [](const Candidate& a, const Candidate& b) { return a.lost > b.lost; });
  for (const Candidate& victim : needed) {
    if (taken_.size() == 1 && surplus_.empty()) break;
    GiveBackAll(victim);
    if (trial_.Fits()) {
      std::erase_if(taken_, [&](const Candidate& c) { return c.job == victim.job; });
    } else {
      TakeAll(victim);
    }
  }
}

VictimPlan Search::Plan() {
  VictimPlan plan;
  plan.flavor = flavor_;
  const auto preempted = [this](JobRef job) {
    return std::any_of(taken_.begin(), taken_.end(),
                       [&](const Candidate& victim) { return victim.job == job; });
  };
  // Elastic jobs keep as much as they can, the earliest started first.
  std::sort(surplus_.begin(), surplus_.end(), [this](JobRef a, JobRef b) {
    return state_.job(a).hold_serial < state_.job(b).hold_serial;
  });
  for (const JobRef ref : surplus_) {
    const JobState& victim = state_.job(ref);
    if (preempted(ref)) continue;
    const Request& request = victim.spec.request;
    int32_t kept = request.least;
    int32_t most = victim.size;
    while (kept < most) {  // the most that still leaves room
      const int32_t half = kept + (most - kept + 1) / 2;
      const Amounts more = request.unit * (half - request.least);
      trial_.GiveBack(victim, more);
      if (trial_.Fits()) {
        kept = half;
      } else {
        most = half - 1;
      }
      trial_.Take(victim, more);
    }
    trial_.GiveBack(victim, request.unit * (kept - request.least));
    if (kept < victim.size) plan.victims.push_back({ref, kept});
  }
  for (const Candidate& victim : taken_) plan.victims.push_back({victim.job, 0});
  return plan;
}

std::optional<VictimPlan> Search::Run() {
  if (trial_.Fits()) return VictimPlan{flavor_, {}};
  Gather();
  for (const JobRef ref : surplus_) trial_.Take(state_.job(ref), Surplus(state_.job(ref)));
  if (surplus_.empty() || !trial_.Fits()) {
    if (candidates_.empty() || !TakeUntilFits()) return std::nullopt;
    PreferSingle();
    Spare();
  }
  return Plan();
}

}  // namespace

bool MayPreempt(const SchedulerState& state, JobRef job, FlavorIndex flavor) {
  const JobState& waiting = state.job(job);
  const Arena* const arena = state.arenas().Of(flavor, waiting.leaf);
  if (arena == nullptr || arena->ends.empty()) return false;
  if (arena->elastic > 0) return true;
  const QueueSpec& spec = state.tree().node(waiting.leaf).spec;
  if (spec.preempt_within != PreemptRule::kNever) {
    for (const JobRef running : state.RunningOf(waiting.leaf)) {
      const JobState& other = state.job(running);
      if (other.phase == Phase::kRunning && other.priority() < waiting.priority()) return true;
    }
  }
  // Something to reclaim, or a reservation to displace.
  const bool borrowers = state.ledger().borrowers(state.tree().node(waiting.leaf).root) > 0;
  const bool displaces = arena->reservation.job != kNoIndex && arena->reservation.job != job;
  if (spec.reclaim == PreemptRule::kNever || !(borrowers || displaces)) return false;
  const Amounts demand = waiting.spec.request.Least();
  for (const NodeIndex node : state.tree().node(waiting.leaf).path) {
    const NodeIndex root = state.tree().node(node).root;
    if (node == root) continue;
    bool nominal = true;
    for (size_t r = 0; r < kResources; ++r) {
      const Amounts& used = state.ledger().usage(flavor)[static_cast<size_t>(node)];
      nominal &= demand[r] == 0 || !state.tree().Limits(flavor, root, r) ||
                 used[r] + demand[r] <= state.tree().cell(flavor, node).subtree[r];
    }
    if (nominal) return true;
  }
  return false;
}

std::optional<VictimPlan> FindVictims(const SchedulerState& state, JobRef job) {
  const JobState& waiting = state.job(job);
  for (const FlavorIndex flavor : state.tree().node(waiting.leaf).flavors) {
    if ((waiting.flavor_mask & (1U << flavor)) == 0) continue;
    if (!MayPreempt(state, job, flavor)) continue;
    const FlavorCapacity& capacity = state.arenas().capacity(flavor);
    if (!waiting.spec.request.largest_task.FitsIn(capacity.largest_node)) continue;
    if (std::optional<VictimPlan> plan = Search(state, job, flavor).Run()) return plan;
  }
  return std::nullopt;
}

}  // namespace shoal::queue
