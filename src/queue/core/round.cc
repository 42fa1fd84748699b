#include "queue/core/round.h"

#include <algorithm>
#include <tuple>

#include "queue/core/victims.h"

namespace shoal::queue {
namespace {

// A reservation is made again after so many releases, since it may then be earlier.
constexpr int32_t kReleasesBeforeRenewal = 16;

Millis ExpectedEnd(Millis start, Millis run_time) {
  return run_time > Millis(0) ? start + run_time : kForever;
}

}  // namespace

Round::Round(SchedulerState* state, std::vector<Decision>* decisions)
    : state_(*state), decisions_(*decisions), windows_(state->tree().flavor_count()) {
  if (state_.policy().windows.empty()) return;
  for (size_t f = 0; f < windows_.size(); ++f) {
    windows_[f] =
        ViewWindows(state_.policy(), state_.tree().flavor_name(static_cast<int>(f)), state_.now());
  }
}

void Round::Run() {
  RefuseImpossible();
  EnforceStops();
  StartReady();
  while (true) {
    StartReserved();
    std::vector<NodeIndex> leaves = state_.TakeTouched();
    if (leaves.empty()) break;
    ServeByGroups(&leaves);
  }
  if (state_.policy().grow) Grow();
}

void Round::RefuseImpossible() {
  for (const JobRef job : state_.impossible()) {
    if (state_.job(job).phase != Phase::kImpossible || state_.job(job).refused) continue;
    state_.job(job).refused = true;
    Decision decision;
    decision.action = Action::kRefuse;
    decision.job = job;
    decisions_.push_back(decision);
  }
  state_.impossible().clear();
}

// Jobs of drained queues and of flavors in maintenance are preempted.
void Round::EnforceStops() {
  const bool closed = std::any_of(windows_.begin(), windows_.end(),
                                  [](const WindowView& view) { return !view.open; });
  if (!closed && !state_.tree().drains()) return;
  for (size_t n = 0; n < state_.tree().nodes().size(); ++n) {
    const auto leaf = static_cast<NodeIndex>(n);
    const bool drained = state_.tree().node(leaf).spec.mode == QueueMode::kDrain;
    if (!closed && !drained) continue;
    std::vector<JobRef> stopped;
    for (const JobRef job : state_.RunningOf(leaf)) {
      const JobState& running = state_.job(job);
      if (running.phase != Phase::kRunning || state_.now() < running.kept_until) continue;
      if (drained || !windows_[static_cast<size_t>(running.flavor)].open) stopped.push_back(job);
    }
    std::sort(stopped.begin(), stopped.end(), [this](JobRef a, JobRef b) {
      return state_.job(a).hold_serial < state_.job(b).hold_serial;
    });
    for (const JobRef job : stopped)
      Preempt(job, drained ? ReasonCode::kHeld : ReasonCode::kMaintenance);
  }
}

void Round::Preempt(JobRef job, ReasonCode why) {
  JobState& victim = state_.job(job);
  victim.phase = Phase::kLeaving;
  state_.SetEnd(job, state_.now() + state_.policy().preempt_grace);
  Decision decision;
  decision.action = Action::kPreempt;
  decision.job = job;
  decision.flavor = victim.flavor;
  decision.reason.code = why;
  decision.reason.node = victim.leaf;
  decision.reason.flavor = victim.flavor;
  decisions_.push_back(decision);
}

// Jobs whose victims have stopped. One that does not fit yet waits for the victims of others.
void Round::StartReady() {
  std::vector<JobRef> ready;
  ready.swap(state_.ready());
  for (const JobRef ref : ready) {
    JobState& job = state_.job(ref);
    if (job.phase != Phase::kAssigned || job.victims > 0) continue;
    if (!job.charge.FitsIn(RealAvailable(state_, job.flavor, job.leaf))) {
      state_.ready().push_back(ref);
      continue;
    }
    job.phase = Phase::kRunning;
    job.started = job.saved = job.resized = state_.now();
    state_.SetCharge(ref, job.charge, job.charge);
    state_.SetEnd(ref, ExpectedEnd(job.started, job.spec.run_time));
    Decision decision;
    decision.job = ref;
    decision.flavor = job.flavor;
    decision.size = job.size;
    decisions_.push_back(decision);
  }
}

void Round::StartReserved() {
  for (Arena& arena : state_.arenas().all()) {
    if (arena.reservation.job != kNoIndex) StartReservedOf(&arena);
  }
}

void Round::StartReservedOf(Arena* arena) {
  const JobRef ref = arena->reservation.job;
  const JobState& job = state_.job(ref);
  const Amounts demand = job.spec.request.Least();
  Amounts headroom;
  // What holds it back now is not a lack of capacity: another job gets the reservation.
  if (state_.tree().node(job.leaf).spec.mode != QueueMode::kOpen || !Admits(arena->flavor, job) ||
      !state_.lanes().Headroom(job.lane, &headroom) || !demand.FitsIn(headroom)) {
    state_.DropReservation(arena);
    state_.TouchArena(*arena);
    return;
  }
  if (demand.FitsIn(state_.Available(arena->flavor, job.leaf))) return Admit(ref, arena->flavor);
  const bool late = state_.now() >= arena->reservation.at;
  if (!late && arena->reservation.releases < kReleasesBeforeRenewal) return;
  arena->reservation.missed |= late;
  state_.Reserve(arena, ref);
  state_.TouchArena(*arena);
}

bool Round::Admits(FlavorIndex flavor, const JobState& job) const {
  return windows_[static_cast<size_t>(flavor)].Admits(state_.now(), job.spec.run_time);
}

// Queues of different trees that do not compete are served one tree after the other.
void Round::ServeByGroups(std::vector<NodeIndex>* leaves) {
  std::vector<std::pair<NodeIndex, std::vector<NodeIndex>>> groups;
  std::sort(leaves->begin(), leaves->end());
  for (const NodeIndex leaf : *leaves) {
    NodeIndex group = state_.tree().node(leaf).root;
    for (const FlavorIndex flavor : state_.tree().node(leaf).flavors) {
      const Arena* const arena = state_.arenas().Of(flavor, leaf);
      if (arena != nullptr && arena->roots.size() > 1) group = kNoIndex;
    }
    const auto found = std::find_if(groups.rbegin(), groups.rend(),
                                    [&](const auto& other) { return other.first == group; });
    if (found == groups.rend()) {
      groups.push_back({group, {leaf}});
    } else {
      found->second.push_back(leaf);
    }
  }
  for (const auto& [group, members] : groups) Serve(members);
}

void Round::Serve(const std::vector<NodeIndex>& leaves) {
  std::vector<Active> active;
  for (const NodeIndex leaf : leaves) {
    if (state_.tree().node(leaf).spec.mode != QueueMode::kOpen) continue;
    if (const JobRef head = Head(leaf); head != kNoIndex)
      active.push_back({leaf, state_.job(head).spec.order});
  }
  while (!active.empty()) {
    const size_t next = NextServed(active);
    const NodeIndex leaf = active[next].leaf;
    const JobRef head = Visit(leaf) ? Head(leaf) : kNoIndex;
    if (head == kNoIndex) {
      active[next] = active.back();
      active.pop_back();
    } else {
      active[next].order = state_.job(head).spec.order;
    }
  }
}

size_t Round::NextServed(const std::vector<Active>& active) const {
  size_t best = 0;
  for (size_t i = 1; i < active.size(); ++i) {
    const bool equal =
        std::tie(active[i].order, active[i].leaf) < std::tie(active[best].order, active[best].leaf);
    if (state_.ledger().Before(active[i].leaf, active[best].leaf, equal)) best = i;
  }
  return best;
}

bool Round::Visit(NodeIndex leaf) {
  const JobRef head = Head(leaf);
  if (head == kNoIndex) return false;
  Choice choice = FirstStartable(leaf);
  if (choice.job != head) {
    if (TakeFromOthers(head)) return true;
    const bool reserved = EnsureReservation(head);
    // It may have been held back only by the reservation that it displaced.
    if (reserved && StartWithReservation(head)) return true;
    const QueueOrder order = state_.tree().node(leaf).spec.order;
    if (order == QueueOrder::kStrict || !state_.policy().backfill) return false;
    if (reserved) choice = FirstStartable(leaf);
  }
  if (choice.job == kNoIndex) return false;
  Admit(choice.job, choice.flavor);
  return true;
}

bool Round::StartWithReservation(JobRef head) {
  const NodeIndex leaf = state_.job(head).leaf;
  for (const FlavorIndex flavor : state_.tree().node(leaf).flavors) {
    Arena* const arena = state_.arenas().Of(flavor, leaf);
    if (arena == nullptr || arena->reservation.job != head) continue;
    StartReservedOf(arena);
    return state_.job(head).phase == Phase::kRunning;
  }
  return false;
}

// The first job that no limit of its user or team and no maintenance window holds back.
JobRef Round::Head(NodeIndex leaf) const {
  const WaitingLines& lines = state_.lanes().lines();
  JobRef head = kNoIndex;
  for (const int32_t index : state_.lanes().OfLeaf(leaf)) {
    const Lane& lane = state_.lanes().lane(index);
    LineBounds bounds;
    if (lines.size(lane.line) == 0 || !state_.lanes().Headroom(index, &bounds.amounts)) continue;
    JobRef first = kNoIndex;
    if (state_.policy().windows.empty()) {
      first = lane.accounts.empty() ? lines.First(lane.line) : lines.FirstFit(lane.line, bounds);
    } else {
      for (const FlavorIndex flavor : state_.tree().node(leaf).flavors) {
        const JobRef found = FirstInWindow(lane.line, flavor, bounds);
        if (found != kNoIndex && (first == kNoIndex || lines.Before(found, first))) first = found;
      }
    }
    if (first != kNoIndex && (head == kNoIndex || lines.Before(first, head))) head = first;
  }
  return head;
}

JobRef Round::FirstInWindow(WaitingLines::Line line, FlavorIndex flavor, LineBounds bounds) const {
  const WaitingLines& lines = state_.lanes().lines();
  bounds.flavors = 1U << flavor;
  if (!windows_[static_cast<size_t>(flavor)].open) return kNoIndex;
  JobRef job = lines.FirstFit(line, bounds);
  while (job != kNoIndex && !Admits(flavor, state_.job(job)))
    job = lines.FirstFit(line, bounds, job);
  return job;
}

Round::Choice Round::FirstStartable(NodeIndex leaf) const {
  const WaitingLines& lines = state_.lanes().lines();
  Choice best;
  for (const FlavorIndex flavor : state_.tree().node(leaf).flavors) {
    const Arena* const arena = state_.arenas().Of(flavor, leaf);
    if (arena == nullptr) continue;
    const Amounts available = state_.Available(flavor, leaf);
    for (const int32_t index : state_.lanes().OfLeaf(leaf)) {
      const Lane& lane = state_.lanes().lane(index);
      Amounts headroom;
      if (lines.size(lane.line) == 0 || !state_.lanes().Headroom(index, &headroom)) continue;
      const JobRef job = FirstOfLane(lane, *arena, Min(available, headroom));
      if (job == kNoIndex || (best.job != kNoIndex && !lines.Before(job, best.job))) continue;
      best = {job, flavor};
    }
  }
  return best;
}

// Without delaying the reserved job: one that ends before, or that fits beside it.
JobRef Round::FirstOfLane(const Lane& lane, const Arena& arena, const Amounts& amounts) const {
  const WaitingLines& lines = state_.lanes().lines();
  const Reservation& reservation = arena.reservation;
  LineBounds bounds;
  bounds.amounts = amounts;
  if (reservation.job == kNoIndex) return FirstInWindow(lane.line, arena.flavor, bounds);
  JobRef brief = kNoIndex;
  if (reservation.at < kForever && !reservation.missed && reservation.at > state_.now()) {
    bounds.run_time = reservation.at - state_.now();
    brief = FirstInWindow(lane.line, arena.flavor, bounds);
    bounds.run_time = kForever;
  }
  bounds.amounts = Min(amounts, state_.ShadowAvailable(arena, lane.leaf));
  const JobRef beside = FirstInWindow(lane.line, arena.flavor, bounds);
  if (brief == kNoIndex || beside == kNoIndex) return brief == kNoIndex ? beside : brief;
  return lines.Before(beside, brief) ? beside : brief;
}

bool Round::TakeFromOthers(JobRef ref) {
  const NodeIndex leaf = state_.job(ref).leaf;
  const std::pair<int64_t, int64_t> attempt(state_.job(ref).serial,
                                            state_.version(state_.tree().node(leaf).root));
  if (state_.tried(leaf) == attempt) return false;
  state_.tried(leaf) = attempt;
  const std::optional<VictimPlan> plan = FindVictims(state_, ref);
  if (!plan || !Admits(plan->flavor, state_.job(ref))) return false;
  std::vector<Victim> victims = plan->victims;
  std::erase_if(victims, [this](const Victim& victim) { return Undo(victim.job); });
  // Without victims it may have to wait until those of others have stopped.
  const Amounts demand = state_.job(ref).spec.request.Least();
  if (victims.empty() && demand.FitsIn(RealAvailable(state_, plan->flavor, leaf))) {
    Admit(ref, plan->flavor);
  } else {
    SetAside(ref, plan->flavor, victims);
  }
  // A reserved job that was displaced gets a new time.
  Arena* const arena = state_.arenas().Of(plan->flavor, leaf);
  if (const JobRef reserved = arena->reservation.job; reserved != kNoIndex) {
    state_.Reserve(arena, reserved);
    state_.TouchArena(*arena);
  }
  return true;
}

// Takes back an admission of this round, so that no job is preempted before it has started.
bool Round::Undo(JobRef ref) {
  const auto admission =
      std::find_if(decisions_.begin(), decisions_.end(), [&](const Decision& decision) {
        return decision.job == ref && decision.action == Action::kAdmit;
      });
  if (admission == decisions_.end()) return false;
  decisions_.erase(admission);
  state_.EndHold(ref);
  state_.job(ref).size = 0;
  state_.EnterLine(ref);
  return true;
}

// Charges the job for what its victims will release, and tells them to. They hold it until they
// have stopped (JobState::real).
void Round::SetAside(JobRef ref, FlavorIndex flavor, const std::vector<Victim>& victims) {
  state_.LeaveLine(ref);
  const Amounts demand = state_.job(ref).spec.request.Least();
  const Millis ready = state_.now() + state_.policy().preempt_grace;
  for (const Victim& chosen : victims) {
    JobState& victim = state_.job(chosen.job);
    victim.beneficiary = ref;
    Decision decision;
    decision.action = chosen.size == 0 ? Action::kPreempt : Action::kResize;
    decision.job = chosen.job;
    decision.beneficiary = ref;
    decision.flavor = flavor;
    decision.size = chosen.size;
    decisions_.push_back(decision);
    const Amounts kept = chosen.size == 0 ? Amounts{} : victim.spec.request.At(chosen.size);
    state_.SetCharge(chosen.job, kept, victim.real);
    victim.shrinking = chosen.size != 0;
    if (victim.shrinking) {
      victim.whole = victim.size;
      victim.size = chosen.size;
    } else {
      victim.phase = Phase::kLeaving;
      state_.SetEnd(chosen.job, ready);
    }
  }
  JobState& job = state_.job(ref);
  job.phase = Phase::kAssigned;
  job.size = job.spec.request.least;
  job.victims = static_cast<int32_t>(victims.size());
  if (victims.empty()) state_.ready().push_back(ref);
  state_.BeginHold(ref, flavor, demand, {}, ExpectedEnd(ready, job.spec.run_time));
  Decision decision;
  decision.action = Action::kReserve;
  decision.job = ref;
  decision.flavor = flavor;
  decision.size = job.size;
  decision.at = ready;
  decision.reason.code = ReasonCode::kVictims;
  decisions_.push_back(decision);
}

// Called when the head of a queue is blocked. True if a reservation was made.
//
// An arena without a reservation gives it to the blocked head that was submitted first, whatever
// the shares. So every head gets it in turn; by shares, a queue whose own quota keeps its share
// small would get it again and again.
bool Round::EnsureReservation(JobRef head) {
  const JobState& job = state_.job(head);
  Arena* best = nullptr;
  bool made = false;
  const bool reserved = HasReservation(head);
  for (const FlavorIndex flavor : state_.tree().node(job.leaf).flavors) {
    Arena* const arena = state_.arenas().Of(flavor, job.leaf);
    if (arena == nullptr || !MayReserve(flavor, job)) continue;
    JobRef chosen = head;
    if (const JobRef other = arena->reservation.job; other == kNoIndex) {
      chosen = FirstBlocked(*arena, head);
    } else if (state_.job(other).leaf != job.leaf ||
               state_.job(other).priority() >= job.priority()) {
      continue;
    }
    if (chosen == head && reserved) continue;
    if (arena->reservation.job != kNoIndex) state_.TouchArena(*arena);
    if (!state_.Reserve(arena, chosen)) continue;
    if (chosen != head) {
      made = true;
      TellReservation(*arena);
    } else if (best != nullptr && best->reservation.at <= arena->reservation.at) {
      state_.DropReservation(arena);
    } else {
      if (best != nullptr) state_.DropReservation(best);
      best = arena;
    }
  }
  if (best != nullptr) TellReservation(*best);
  return made || best != nullptr;
}

bool Round::MayReserve(FlavorIndex flavor, const JobState& job) const {
  return (job.flavor_mask & (1U << flavor)) != 0 && Admits(flavor, job);
}

bool Round::HasReservation(JobRef ref) const {
  const NodeIndex leaf = state_.job(ref).leaf;
  const std::vector<FlavorIndex>& flavors = state_.tree().node(leaf).flavors;
  return std::any_of(flavors.begin(), flavors.end(), [&](FlavorIndex flavor) {
    const Arena* const arena = state_.arenas().Of(flavor, leaf);
    return arena != nullptr && arena->reservation.job == ref;
  });
}

// Of the heads that do not fit on the arena's flavor, the one that was submitted first.
JobRef Round::FirstBlocked(const Arena& arena, JobRef head) const {
  const auto key = [this](JobRef ref) {
    return std::tie(state_.job(ref).spec.order, state_.job(ref).spec.id);
  };
  JobRef first = head;
  for (const NodeIndex root : arena.roots) {
    for (const NodeIndex leaf : state_.LeavesOf(root)) {
      if (leaf == state_.job(head).leaf || state_.lanes().Waiting(leaf) == 0) continue;
      if (state_.tree().node(leaf).spec.mode != QueueMode::kOpen) continue;
      const JobRef other = Head(leaf);
      if (other == kNoIndex || !(key(other) < key(first))) continue;
      const JobState& job = state_.job(other);
      const std::vector<FlavorIndex>& flavors = state_.tree().node(leaf).flavors;
      if (std::find(flavors.begin(), flavors.end(), arena.flavor) == flavors.end() ||
          !MayReserve(arena.flavor, job) || HasReservation(other) ||
          job.spec.request.Least().FitsIn(state_.Available(arena.flavor, leaf)))
        continue;
      first = other;
    }
  }
  return first;
}

void Round::TellReservation(const Arena& arena) {
  Decision decision;
  decision.action = Action::kReserve;
  decision.job = arena.reservation.job;
  decision.flavor = arena.flavor;
  decision.size = state_.job(decision.job).spec.request.least;
  decision.at = arena.reservation.at;
  decision.reason.code = ReasonCode::kCapacity;
  decisions_.push_back(decision);
}

void Round::Admit(JobRef ref, FlavorIndex flavor) {
  state_.LeaveLine(ref);
  JobState& job = state_.job(ref);
  job.phase = Phase::kRunning;
  job.size = job.spec.request.least;
  job.started = job.saved = job.resized = state_.now();
  state_.BeginHold(ref, flavor, job.spec.request.Least(), job.spec.request.Least(),
                   ExpectedEnd(state_.now(), job.spec.run_time));
  Decision decision;
  decision.job = ref;
  decision.flavor = flavor;
  decision.size = job.size;
  decisions_.push_back(decision);
}

// Elastic jobs take what no waiting job can use now and what is not reserved.
void Round::Grow() {
  std::vector<JobRef> growing;
  for (const Arena& arena : state_.arenas().all()) {
    if (arena.elastic == 0) continue;
    for (const EndKey& key : arena.ends) {
      const JobState& job = state_.job(key.job);
      const bool paused =
          job.resized != job.started && job.resized + state_.policy().resize_pause > state_.now();
      if (job.phase == Phase::kRunning && job.size < job.spec.request.most && !job.shrinking &&
          !paused && state_.tree().node(job.leaf).spec.mode == QueueMode::kOpen)
        growing.push_back(key.job);
    }
  }
  std::sort(growing.begin(), growing.end(), [this](JobRef a, JobRef b) {
    const JobState& first = state_.job(a);
    const JobState& second = state_.job(b);
    const bool equal = first.leaf != second.leaf ? first.leaf < second.leaf
                                                 : first.hold_serial < second.hold_serial;
    return first.leaf == second.leaf ? equal
                                     : state_.ledger().Before(first.leaf, second.leaf, equal);
  });
  for (const JobRef job : growing) GrowJob(job);
}

void Round::GrowJob(JobRef ref) {
  JobState& job = state_.job(ref);
  const Arena& arena = *state_.arenas().Of(job.flavor, job.leaf);
  Amounts headroom;
  state_.lanes().Headroom(job.lane, &headroom);
  for (const int32_t account : state_.lanes().lane(job.lane).accounts)
    headroom = Min(headroom, state_.lanes().account(account).Left());
  Amounts most = Min(state_.Available(job.flavor, job.leaf), headroom);
  const Reservation& reservation = arena.reservation;
  const bool ends_before = reservation.at < kForever && job.end <= reservation.at;
  if (reservation.job != kNoIndex && !ends_before)
    most = Min(most, state_.ShadowAvailable(arena, job.leaf));
  int64_t more = job.spec.request.most - job.size;
  for (size_t r = 0; r < kResources; ++r) {
    const int64_t unit = job.spec.request.unit[r];
    if (unit > 0) more = std::min(more, std::max<int64_t>(0, most[r]) / unit);
  }
  if (more <= 0) return;
  job.size += static_cast<int32_t>(more);
  state_.SetCharge(ref, job.spec.request.At(job.size), job.spec.request.At(job.size));
  for (Decision& decision : decisions_) {
    if (decision.job != ref || decision.action != Action::kAdmit) continue;
    decision.size = job.size;
    return;
  }
  job.resized = state_.now();
  Decision decision;
  decision.action = Action::kResize;
  decision.job = ref;
  decision.flavor = job.flavor;
  decision.size = job.size;
  decisions_.push_back(decision);
}

}  // namespace shoal::queue
