#include "controller/admission/job_admitter.h"

#include <algorithm>
#include <climits>
#include <set>
#include <utility>

#include "base/log.h"
#include "controller/admission/admitter_entry.h"
#include "controller/admission/engine_queues.h"
#include "controller/admission/held_jobs.h"
#include "job/spec/json.h"
#include "queue/core/job_spec.h"
#include "queue/why/why.h"

namespace shoal::controller {
namespace {

// Interval at which waiting jobs are told new reasons, and compared with the store.
constexpr Duration kTick = std::chrono::seconds(5);
// The capacity of an engine is asked again when a job arrives after this time.
constexpr Duration kCapacityAge = std::chrono::seconds(5);
// New reasons that are stored in one tick.
constexpr int kReasonsStored = 200;

// The job's queue; the default one of the policy for a job that names none.
std::string QueueOf(const queue::Policy& policy, const job::Job& job) {
  const bool named = job.queue != job::Job().queue ||
                     std::ranges::any_of(policy.queues, [&](const queue::QueueSpec& queue) {
                       return queue.name == job.queue;
                     });
  return named ? job.queue : policy.default_queue;
}

// Jobs that are expected to run as long.
std::string KindOf(const JobRecord& record) {
  return record.team + "\n" + record.user + "\n" + record.engine + "\n" + record.name;
}

// How often a job was asked to stop for another.
int RequestsTo(const AdmitterEntry* entry) { return entry == nullptr ? 0 : entry->asked; }

}  // namespace

JobAdmitter::JobAdmitter(JobAdmitterOptions options)
    : options_(std::move(options)),
      tasks_(options_.loop),
      managed_(options_.policy.has_value()),
      modes_(options_.modes),
      policy_(WithModes(managed_ ? *options_.policy : EnginesAsFlavors(options_.engines->names()),
                        modes_)),
      scheduler_(policy_),
      held_(std::make_unique<HeldJobs>(&scheduler_, &options_, &entries_, [this] { Kick(); })) {}

JobAdmitter::~JobAdmitter() { options_.loop->Cancel(tick_); }

void JobAdmitter::Why(const std::string& id, std::function<void(const WhyWaits&)> done) {
  const Entry* const entry = Find(id);
  if (entry == nullptr || !entry->decidable()) return done({});
  // The search tries each change in a copy; this thread serves all jobs meanwhile.
  auto copy = std::make_shared<const queue::Scheduler>(scheduler_);
  options_.store_threads->Execute([copy, ref = entry->ref, done = std::move(done),
                                   reason = ReasonText(*entry, scheduler_.ReasonOf(entry->ref))] {
    WhyWaits answer;
    answer.waits = true;
    answer.reason = reason;
    for (const queue::Change& change : queue::ChangesThatStart(*copy, ref))
      answer.changes.push_back(queue::ChangeText(*copy, ref, change));
    answer.forecast = queue::ForecastText(queue::ForecastStart(*copy, ref), copy->state().now());
    done(answer);
  });
}

void JobAdmitter::Try(const JobRecord& record, const job::Job& job,
                      std::function<void(const Result<queue::SubmissionTrial>&)> done) {
  if (Machines& machines = machines_[record.engine]; !machines.known) {
    machines.then.push_back([this, record, job, done = std::move(done)](const Status& known) {
      if (!known.ok()) return done(known);
      Try(record, job, done);
    });
    return AskMachines(record.engine);
  }
  auto copy = std::make_shared<const queue::Scheduler>(scheduler_);
  queue::JobSpec spec = SpecOf(record, job);
  spec.order = INT64_MAX;  // after all that wait
  options_.store_threads->Execute([copy, spec, now = Now(), done = std::move(done)] {
    done(queue::TrySubmission(*copy, spec, now));
  });
}

void JobAdmitter::OnEvent(const std::string& id, const rendezvous::JobEvent& event) {
  held_->OnEvent(Find(id), event, managed_);
}

Status JobAdmitter::CheckScale(const std::string& id, const std::string& role, int size) const {
  return managed_ ? held_->CheckScale(Find(id), role, size) : Status::Ok();
}

bool JobAdmitter::RanWhole(const std::string& id) const {
  const Entry* const entry = Find(id);
  return entry != nullptr && entry->whole;
}

void JobAdmitter::Learn(const JobRecord& ended, bool whole) {
  if (!whole || ended.state != JobState::kSucceeded || ended.started == WallTime{}) return;
  const auto run_time = std::chrono::duration_cast<queue::Millis>(ended.ended - ended.started);
  if (run_time > queue::Millis(0)) run_times_.Learn(KindOf(ended), run_time);
}

void JobAdmitter::ExpectAll() {
  for (const auto& [id, entry] : entries_) {
    if (entry->ref == queue::kNoIndex) continue;
    const queue::JobSpec spec = SpecOf(entry->record, entry->job);
    if (spec.run_time != scheduler_.job(entry->ref).spec.run_time)
      scheduler_.SetRunTime(entry->ref, spec.run_time, spec.confidence, Now());
  }
  Kick();
}

queue::Millis JobAdmitter::Now() const {
  return std::chrono::duration_cast<queue::Millis>(options_.clock->Wall().time_since_epoch());
}

JobAdmitter::Entry* JobAdmitter::Find(const std::string& id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second.get();
}

JobAdmitter::Entry* JobAdmitter::Of(queue::JobRef job) const {
  const auto id = ids_.find(job);
  return id == ids_.end() ? nullptr : Find(id->second);
}

// ---- Jobs ---------------------------------------------------------------------------------------

void JobAdmitter::Wait(const JobRecord& record, const job::Job& job, AdmissionCallbacks calls) {
  Release(record.id);
  auto entry = std::make_unique<Entry>();
  entry->calls = std::move(calls);
  Join(record, job, entry.get());
  Entry* const waiting = entry.get();
  entries_[record.id] = std::move(entry);
  const Machines& machines = machines_[record.engine];
  if (!machines.known || options_.clock->Now() - machines.asked > kCapacityAge)
    AskMachines(record.engine);
  if (machines.known) Enter(waiting);
  if (tick_ == 0) tick_ = options_.loop->After(kTick, [this] { Tick(); });
}

void JobAdmitter::Hold(const JobRecord& record, const job::Job& job, const std::string& flavor) {
  Release(record.id);
  auto entry = std::make_unique<Entry>();
  Join(record, job, entry.get());
  Entry* const holding = entry.get();
  entries_[record.id] = std::move(entry);
  holding->whole = holding->history.admissions == 1;
  const bool entered = Enter(holding);
  if (const job::Role* const role = holding->job.FindRole(holding->role)) {
    holding->size = holding->accepted = role->replicas;
    holding->tasks.emplace(&holding->job, holding->role);
  }
  if (entered) Restore(holding, flavor);
  if (tick_ == 0) tick_ = options_.loop->After(kTick, [this] { Tick(); });
}

void JobAdmitter::Join(const JobRecord& record, const job::Job& job, Entry* entry) {
  entry->record = record;
  entry->job = job;
  entry->serial = ++serial_;
  entry->whole = record.started == WallTime{};
  if (const auto history = histories_.extract(record.id); !history.empty())
    entry->history = history.mapped();
}

// Makes a flavor for an engine that was added after the start.
void JobAdmitter::AddFlavor(const std::string& engine) {
  if (managed_) return;
  std::vector<std::string> names;
  for (const queue::Flavor& flavor : policy_.flavors) names.push_back(flavor.name);
  if (std::ranges::find(names, engine) != names.end()) return;
  names.push_back(engine);
  policy_ = WithModes(EnginesAsFlavors(names), modes_);
  const Status set = scheduler_.SetPolicy(policy_, Now());
  if (!set.ok()) LogWarning("engine {}: {}", engine, set.message());
}

// The job as the scheduler sees it: without a policy that resizes jobs, of the size of its file.
queue::JobSpec JobAdmitter::SpecOf(const JobRecord& record, const job::Job& job) const {
  queue::JobSpec spec = queue::SpecOf(job);
  spec.id = record.id;
  spec.name = record.name;
  spec.user = record.user;
  spec.team = record.team;
  spec.engine = record.engine;
  spec.order = record.order;
  spec.queue = managed_ ? QueueOf(policy_, job) : policy_.default_queue;
  if (!managed_) spec.flavors = {record.engine};
  if (spec.run_time == queue::Millis(0)) {
    spec.run_time = run_times_.Expect(KindOf(record));
    if (spec.run_time > queue::Millis(0)) spec.confidence = run_times_.Confidence(KindOf(record));
  }
  queue::Request& request = spec.request;
  if (!managed_ || !policy_.grow)
    request = {{}, request.At(spec.tasks), 1, 1, request.largest_task};
  return spec;
}

// Gives the job to the scheduler. False if it does not take it.
bool JobAdmitter::Enter(Entry* entry) {
  const JobRecord& record = entry->record;
  AddFlavor(record.engine);
  queue::JobSpec spec = SpecOf(record, entry->job);
  queue::Request& request = spec.request;
  entry->role = spec.role;
  entry->elastic = managed_ && policy_.grow && request.least < request.most;
  if (entry->elastic) request = BoundsOf(request, entry->history, entry->waits());
  const Result<queue::JobRef> ref = scheduler_.Submit(std::move(spec), Now());
  if (!ref.ok()) {
    if (entry->waits()) Fail(record.id, ref.status());
    return false;
  }
  entry->ref = *ref;
  ids_[*ref] = record.id;
  if (entry->waits()) untold_.push_back(record.id);
  Kick();
  return true;
}

void JobAdmitter::Restore(Entry* entry, const std::string& flavor) {
  const std::string& engine = entry->record.engine;
  std::vector<std::string> flavors = {flavor};
  for (const queue::Flavor& one : policy_.flavors) {
    if (one.engine == engine || one.engine.empty()) flavors.push_back(one.name);
  }
  Status held = InvalidArgument("the policy has no flavor for engine " + engine);
  const WallTime began = entry->record.started;
  const queue::Millis started =
      began == WallTime{} ? Now()
                          : std::chrono::duration_cast<queue::Millis>(began.time_since_epoch());
  for (const std::string& one : flavors) {
    if (!one.empty())
      held = scheduler_.Restore(entry->ref, one, entry->elastic ? entry->size : 1, started);
    if (held.ok()) return;
  }
  LogWarning("job {}: what it holds is not counted: {}", entry->record.id, held.message());
}

void JobAdmitter::Release(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  if (const queue::JobRef ref = found->second->ref; ref != queue::kNoIndex) {
    scheduler_.End(ref, Now());
    ids_.erase(ref);
    Kick();
  }
  entries_.erase(found);
}

void JobAdmitter::Fail(const std::string& id, const Status& status) {
  Entry* const entry = Find(id);
  if (entry == nullptr || !entry->waits()) return;
  const auto failed = std::move(entry->calls.on_failed);
  Release(id);
  tasks_.Post([failed, status] { failed(status); });
}

// ---- Machines -----------------------------------------------------------------------------------

void JobAdmitter::AskMachines(const std::string& engine) {
  Machines& machines = machines_[engine];
  if (std::exchange(machines.asking, true)) return;
  options_.engine_threads(engine)->Execute(
      [this, engine, engines = options_.engines, poster = tasks_.poster()] {
        const auto capacity = [&]() -> Result<engine::Capacity> {
          TRY_ASSIGN(engine::Engine* const found, engines->Find(engine));
          if (!found->HasOwnQueue()) return found->GetCapacity();
          // Its own queue knows what is free.
          return engine::Capacity{.cpu = 0, .memory_bytes = 0, .gpu = INT_MAX / 2};
        }();
        poster.Post([this, engine, capacity] { OnMachines(engine, capacity); });
      });
}

void JobAdmitter::OnMachines(const std::string& engine, const Result<engine::Capacity>& capacity) {
  Machines& machines = machines_[engine];
  machines.asking = false;
  machines.asked = options_.clock->Now();
  // After this function, which makes the engine known.
  for (auto& then : std::exchange(machines.then, {}))
    tasks_.Post([then = std::move(then), known = capacity.status()] { then(known); });
  std::vector<std::string> waiting;
  for (const auto& [id, entry] : entries_) {
    if (entry->record.engine == engine && entry->ref == queue::kNoIndex) waiting.push_back(id);
  }
  if (!capacity.ok()) {
    if (machines.known) return LogWarning("engine {}: {}", engine, capacity.status().message());
    const Status status(Code::kInternal, capacity.status().message());
    for (const std::string& id : waiting) Fail(id, status);
    return;
  }
  machines.known = true;
  machines.capacity = *capacity;
  AddFlavor(engine);
  SetMachines(engine, *capacity);
  for (const std::string& id : waiting) {
    if (Entry* const entry = Find(id)) Enter(entry);
  }
  Kick();
}

// The capacity of an engine with several flavors is not known by flavor: the quotas limit it.
void JobAdmitter::SetMachines(const std::string& engine, const engine::Capacity& capacity) {
  std::vector<std::string> flavors;
  for (const queue::Flavor& flavor : policy_.flavors)
    if (flavor.engine == engine) flavors.push_back(flavor.name);
  for (const std::string& flavor : flavors) {
    const bool known = flavors.size() == 1;
    scheduler_.SetMachines(flavor, known ? MachinesOf(capacity) : queue::FlavorMachines{}, Now());
  }
}

Status JobAdmitter::SetPolicy(const std::optional<queue::Policy>& policy, const QueueModes& modes) {
  std::vector<std::string> engines;
  for (const queue::Flavor& flavor : policy_.flavors) engines.push_back(flavor.name);
  const queue::Policy next = WithModes(policy ? *policy : EnginesAsFlavors(engines), modes);
  TRY(scheduler_.SetPolicy(next, Now()));
  managed_ = policy.has_value();
  modes_ = modes;
  policy_ = next;
  for (const auto& [engine, machines] : machines_)
    if (machines.known) SetMachines(engine, machines.capacity);
  Kick();
  return Status::Ok();
}

// ---- Decisions ----------------------------------------------------------------------------------

// Several events that are handled together get one decision.
void JobAdmitter::Kick() {
  if (std::exchange(kicked_, true)) return;
  tasks_.Post([this] {
    kicked_ = false;
    Decide();
  });
}

void JobAdmitter::Decide() {
  const std::vector<queue::Decision> decisions = scheduler_.Decide(Now());
  for (const queue::Decision& decision : decisions) {
    if (decision.action == queue::Action::kPreempt) Preempt(decision);
    if (decision.action == queue::Action::kResize) {
      if (Entry* const resized = Of(decision.job)) held_->Resize(resized, decision.size);
    }
    const auto id = ids_.find(decision.job);
    Entry* const entry = id == ids_.end() ? nullptr : Find(id->second);
    if (entry == nullptr || !entry->waits()) continue;
    if (decision.action == queue::Action::kAdmit) {
      entry->admitted = true;
      entry->size = decision.size;
      entry->flavor = policy_.flavors[static_cast<size_t>(decision.flavor)].name;
      if (!entry->storing) Admit(entry);
    } else if (decision.action == queue::Action::kRefuse) {
      Fail(entry->record.id,
           Status(Code::kInternal,
                  queue::ReasonText(scheduler_.state(), decision.job, decision.reason)));
    }
  }
  for (const std::string& id : std::exchange(untold_, {})) {
    Entry* const entry = Find(id);
    if (entry != nullptr && entry->decidable() && !entry->told) TellReason(entry);
  }
}

void JobAdmitter::Preempt(const queue::Decision& decision) {
  Entry* const victim = Of(decision.job);
  if (victim == nullptr || !options_.preempt) return;
  const Entry* const taker = Of(decision.beneficiary);
  const std::string reason =
      taker != nullptr
          ? "preempted for " + (taker->record.team == victim->record.team
                                    ? taker->record.name + " (" + taker->record.id + ")"
                                    : "a job of team " + taker->record.team)
          : "preempted: " + queue::ReasonText(scheduler_.state(), decision.job, decision.reason);
  held_->Stop(victim, reason);
}

std::vector<std::string> JobAdmitter::WaitingIds() const {
  std::vector<std::string> ids;
  for (const auto& [id, entry] : entries_) {
    if (entry->waits()) ids.push_back(id);
  }
  return ids;
}

// Appends an event if it follows the last one that is known of the job, and calls `done` with the
// result and the record as stored, unless the job has left in the meantime.
void JobAdmitter::Append(Entry* entry, std::vector<Event> events, AppendDone done) {
  entry->storing = true;
  AppendCheck check;
  check.after = entry->record.last_seq;
  options_.store_threads->Execute([this, store = options_.store, id = entry->record.id,
                                   serial = entry->serial, events = std::move(events), check,
                                   done = std::move(done), poster = tasks_.poster()] {
    const Status stored = store->AppendChecked(id, events, Durability::kWritten, check);
    const Result<JobRecord> record = store->GetJob(id);
    poster.Post([this, id, serial, stored, record, done] {
      Entry* const still = Find(id);
      if (still == nullptr || still->serial != serial) return;
      still->storing = false;
      (this->*done)(still, stored, record);
    });
  });
}

void JobAdmitter::Admit(Entry* entry) {
  Event admitted = StateEvent(options_.clock->Wall(), JobState::kAdmitted, "");
  if (managed_) admitted.body[kFlavorField] = entry->flavor;
  std::vector<Event> events;
  const job::Role* const role = entry->job.FindRole(entry->role);
  entry->accepted = entry->size;
  if (entry->elastic && role != nullptr && role->replicas != entry->size) {
    events.push_back(ResizedEvent(options_.clock->Wall(), entry->role, entry->size));
    events.back().body[kResizedBy] = "queue";
  }
  events.push_back(std::move(admitted));
  Append(entry, std::move(events), &JobAdmitter::OnAdmissionStored);
}

void JobAdmitter::OnAdmissionStored(Entry* entry, const Status& stored,
                                    const Result<JobRecord>& record) {
  const std::string id = entry->record.id;
  if (stored.ok() && record.ok()) {
    entry->record = *record;
    if (auto job = job::FromJson(record->job); job.ok()) entry->job = std::move(*job);
    entry->tasks.emplace(&entry->job, entry->role);
    const auto admitted = std::move(entry->calls.on_admitted);
    entry->calls = {};
    if (!entry->elastic) return admitted(*record);
    // It may shrink to its minimum now, whatever it had to start with.
    entry->history.ran = false;
    const int64_t serial = entry->serial;
    admitted(*record);
    if (entry = Find(id); entry == nullptr || entry->serial != serial) return;
    held_->Recount(entry, scheduler_.job(entry->ref).size);
    if (entry->size != entry->accepted) held_->Resize(entry, entry->size);
    return;
  }
  if (stored.code() == Code::kAborted && record.ok()) {
    // Without a new event it was the fence: another server may lead. Tick tries again.
    if (record->last_seq != entry->record.last_seq) Compare(id, record);
    return;
  }
  Fail(id, Status(Code::kInternal, (stored.ok() ? record.status() : stored).message()));
}

// ---- Reasons ------------------------------------------------------------------------------------

// Of the scheduler, and whether the job that it waits for does not stop.
std::string JobAdmitter::ReasonText(const Entry& entry, const queue::Reason& reason) const {
  std::string text = queue::ReasonText(scheduler_.state(), entry.ref, reason);
  const Entry* const other = Of(reason.other);
  if (other == nullptr) return text;
  const bool known = other->record.team == entry.record.team;
  const std::string name = known ? other->record.id : "a job of team " + other->record.team;
  const std::string said = other->refusal.empty() || !known ? "" : " (" + other->refusal + ")";
  if (reason.code == queue::ReasonCode::kVictims && other->asked > 1)
    return text + "; " + name + " was asked " + std::to_string(other->asked) + " times" + said;
  if (scheduler_.job(other->ref).kept_until > Now())
    return text + "; " + name + " did not stop when it was asked to" + said +
           ", and is left alone for now";
  return text;
}

void JobAdmitter::TellReason(Entry* entry) {
  const queue::Reason reason = scheduler_.ReasonOf(entry->ref);
  const std::string why = ReasonText(*entry, reason);
  const bool first = !std::exchange(entry->told, true);
  entry->reason = reason;
  entry->told_requests = RequestsTo(Of(reason.other));
  const Status waiting = entry->calls.on_wait(why, first);
  if (!waiting.ok()) return Fail(entry->record.id, waiting);
  Append(entry, {StateEvent(options_.clock->Wall(), JobState::kPending, why)},
         &JobAdmitter::OnReasonStored);
}

void JobAdmitter::OnReasonStored(Entry* entry, const Status& stored,
                                 const Result<JobRecord>& record) {
  const std::string id = entry->record.id;
  if (!stored.ok() && stored.code() != Code::kAborted)
    LogWarning("job {}: the reason why it waits is not stored: {}", id, stored.message());
  if (record.ok()) return Compare(id, record);
  if (entry->admitted) Admit(entry);  // which tells what is wrong with the store
}

// Tells jobs what they wait for now, and finds those that another process has changed.
void JobAdmitter::Tick() {
  tick_ = 0;
  int stored = 0;
  const std::vector<std::string> waiting = WaitingIds();
  if (waiting.empty() && (!managed_ || entries_.empty())) return;
  for (const std::string& id : waiting) {
    Entry* const entry = Find(id);
    if (entry != nullptr && entry->admitted && !entry->storing) Admit(entry);
    if (entry == nullptr || !entry->decidable() || !entry->told) continue;
    const queue::Reason reason = scheduler_.ReasonOf(entry->ref);
    const bool same = reason.code == entry->reason.code && reason.other == entry->reason.other &&
                      RequestsTo(Of(reason.other)) == entry->told_requests;
    if (!same && stored++ < kReasonsStored) TellReason(entry);
  }
  held_->CheckStops();
  Kick();  // what only time has changed
  tick_ = options_.loop->After(kTick, [this] { Tick(); });
  if (waiting.empty() || std::exchange(comparing_, true)) return;
  options_.store_threads->Execute([this, store = options_.store, poster = tasks_.poster()] {
    auto jobs = store->ListJobs({.ended = false, .limit = INT_MAX});
    poster.Post([this, jobs = std::move(jobs)] {
      comparing_ = false;
      if (!jobs.ok()) return;
      std::set<std::string> unfinished;
      for (const JobRecord& job : *jobs) {
        unfinished.insert(job.id);
        const Entry* const entry = Find(job.id);
        // An older reading than what this object has written is no news.
        if (entry != nullptr && entry->waits() && !entry->storing &&
            job.last_seq > entry->record.last_seq)
          Compare(job.id, job);
      }
      for (const std::string& id : WaitingIds()) {
        if (!unfinished.contains(id)) Reread(id);  // it has ended, or is newer than the list
      }
    });
  });
}

void JobAdmitter::Reread(const std::string& id) {
  options_.store_threads->Execute([this, store = options_.store, id, poster = tasks_.poster()] {
    const Result<JobRecord> record = store->GetJob(id);
    poster.Post([this, id, record] {
      const Entry* const entry = Find(id);
      if (entry != nullptr && !entry->storing) Compare(id, record);
    });
  });
}

// Takes over what the store has of a waiting job.
void JobAdmitter::Compare(const std::string& id, const Result<JobRecord>& record) {
  Entry* const entry = Find(id);
  if (entry == nullptr || !entry->waits() || !record.ok()) return;
  if (record->state != JobState::kPending || record->owner != options_.self) {
    const auto taken = std::move(entry->calls.on_taken);
    Release(id);
    tasks_.Post([taken, record = *record] { taken(record); });
    return;
  }
  const bool changed = record->job != entry->record.job;
  entry->record = *record;
  if (!changed) {
    if (entry->admitted && !entry->storing) Admit(entry);
    return;
  }
  Result<job::Job> job = job::FromJson(record->job);
  if (!job.ok()) return Fail(id, job.status());
  AdmissionCallbacks calls = std::move(entry->calls);
  const bool told = entry->told;
  // A person has asked for another number of tasks.
  const job::Role* const role = job->FindRole(entry->role);
  const job::Role* const before = entry->job.FindRole(entry->role);
  if (role != nullptr && before != nullptr && role->replicas != before->replicas)
    entry->history.wanted = role->replicas;
  histories_[id] = entry->history;
  Wait(*record, *job, std::move(calls));
  if (Entry* const again = Find(id)) again->told = told;
}

}  // namespace shoal::controller
