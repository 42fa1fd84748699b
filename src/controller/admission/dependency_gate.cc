#include "controller/admission/dependency_gate.h"

#include <utility>

#include "base/log.h"
#include "job/spec/json.h"

namespace shoal::controller {
namespace {

constexpr int kCheckedInTick = 200;

}  // namespace

struct DependencyGate::Entry {
  JobRecord record;
  job::Job job;
  AdmissionCallbacks calls;
  Go go;
  int64_t serial = 0;
  bool checking = false;
  bool again = false;  // something has changed since the check began
  bool told = false;   // on_wait was called
};

// What a check in the store has found and written.
struct DependencyGate::Outcome {
  Status asked;
  bool taken = false;  // the job does not wait any longer; also after its cancellation here
  bool met = false;
  std::string reason;   // stored as the reason of the wait
  JobRecord record;     // as stored afterwards
  job::Job job;         // of the record
  bool stored = false;  // `reason` is new
};

DependencyGate::DependencyGate(DependencyGateOptions options)
    : options_(std::move(options)), tasks_(options_.loop) {}

DependencyGate::~DependencyGate() { options_.loop->Cancel(tick_); }

bool DependencyGate::Holds(const JobRecord& record, const job::Job& job) {
  return !job.triggers.after.empty() && record.started == WallTime();
}

void DependencyGate::Wait(const JobRecord& record, const job::Job& job, AdmissionCallbacks calls,
                          Go go) {
  Release(record.id);
  auto entry = std::make_unique<Entry>();
  entry->record = record;
  entry->job = job;
  entry->calls = std::move(calls);
  entry->go = std::move(go);
  entry->serial = ++serial_;
  entries_[record.id] = std::move(entry);
  for (const job::Dependency& one : job.triggers.after) waiters_[one.job].insert(record.id);
  if (tick_ == 0) tick_ = options_.loop->After(options_.tick, [this] { Tick(); });
  Check(record.id);
}

void DependencyGate::Release(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  for (const job::Dependency& one : found->second->job.triggers.after) {
    const auto waiting = waiters_.find(one.job);
    if (waiting == waiters_.end()) continue;
    waiting->second.erase(id);
    if (waiting->second.empty()) waiters_.erase(waiting);
  }
  entries_.erase(found);
}

void DependencyGate::Reread(const std::string& id) { Check(id); }

std::optional<WhyWaits> DependencyGate::Why(const std::string& id) const {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return std::nullopt;
  WhyWaits why;
  why.waits = true;
  why.reason = found->second->record.reason;
  return why;
}

void DependencyGate::OnEnd(const std::string& id) {
  const auto found = waiters_.find(id);
  if (found == waiters_.end()) return;
  const std::set<std::string> waiting = found->second;
  for (const std::string& one : waiting) Check(one);
}

void DependencyGate::Check(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Entry* const entry = found->second.get();
  if (std::exchange(entry->checking, true)) {
    entry->again = true;
    return;
  }
  entry->again = false;
  const std::string told = entry->told ? entry->record.reason : "";
  options_.store_threads->Execute(
      [this, options = options_, id, told, serial = entry->serial, poster = tasks_.poster()] {
        const auto outcome = std::make_shared<Outcome>(Ask(options, id, told));
        poster.Post([this, id, serial, outcome] { OnOutcome(id, serial, *outcome); });
      });
}

// Reads the job and what it waits for, and stores what that comes to: its end, or a new reason. On
// a thread of the store.
DependencyGate::Outcome DependencyGate::Ask(const DependencyGateOptions& options,
                                            const std::string& id, const std::string& told) {
  Outcome outcome;
  const auto ask = [&]() -> Status {
    TRY_ASSIGN(outcome.record, options.store->GetJob(id));
    outcome.taken =
        outcome.record.state != JobState::kPending || outcome.record.owner != options.self;
    if (outcome.taken) return Status::Ok();
    TRY_ASSIGN(outcome.job, job::FromJson(outcome.record.job));
    TRY_ASSIGN(const DependencyAnswer answer,
               AskDependencies(options.store, outcome.job.triggers.after));
    outcome.met = answer.met;
    if (answer.met) return Status::Ok();
    outcome.reason = "waits for " + answer.waits_for;
    if (answer.never.empty() && outcome.reason == told) return Status::Ok();
    const WallTime now = options.clock->Wall();
    const Event event = answer.never.empty()
                            ? StateEvent(now, JobState::kPending, outcome.reason)
                            : EndedEvent(now, JobState::kCancelled, answer.never, {});
    AppendCheck check;
    check.after = outcome.record.last_seq;
    TRY(options.store->AppendChecked(
        id, {&event, 1}, answer.never.empty() ? Durability::kWritten : Durability::kSynced, check));
    outcome.stored = answer.never.empty();
    outcome.taken = !outcome.stored;
    TRY_ASSIGN(outcome.record, options.store->GetJob(id));
    return Status::Ok();
  };
  outcome.asked = ask();
  return outcome;
}

void DependencyGate::OnOutcome(const std::string& id, int64_t serial, const Outcome& outcome) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second->serial != serial) return;
  Entry* const entry = found->second.get();
  entry->checking = false;
  if (!outcome.asked.ok()) {  // the next tick tries again
    if (outcome.asked.code() != Code::kAborted)
      LogWarning("job {}: what it waits for is not known: {}", id, outcome.asked.message());
    return;
  }
  if (outcome.taken || outcome.met) {
    AdmissionCallbacks calls = std::move(entry->calls);
    const Go go = std::move(entry->go);
    Release(id);
    if (outcome.met) return go(outcome.record, outcome.job, std::move(calls));
    return calls.on_taken(outcome.record);
  }
  entry->record = outcome.record;
  entry->job = outcome.job;
  if (outcome.stored) {
    const bool first = !std::exchange(entry->told, true);
    const Status waiting = entry->calls.on_wait(outcome.reason, first);
    if (!waiting.ok()) {
      const auto failed = std::move(entry->calls.on_failed);
      Release(id);
      return failed(waiting);
    }
  }
  if (entry->again) Check(id);
}

void DependencyGate::Tick() {
  tick_ = 0;
  if (entries_.empty()) return;
  auto at = entries_.upper_bound(ticked_);
  std::vector<std::string> ids;
  for (int i = 0; i < kCheckedInTick && static_cast<size_t>(i) < entries_.size(); ++i, ++at) {
    if (at == entries_.end()) at = entries_.begin();
    ids.push_back(at->first);
  }
  ticked_ = ids.back();
  for (const std::string& id : ids) Check(id);
  tick_ = options_.loop->After(options_.tick, [this] { Tick(); });
}

}  // namespace shoal::controller
