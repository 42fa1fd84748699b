#include "controller/admission/job_admitter.h"

#include <algorithm>
#include <climits>
#include <set>
#include <utility>

#include "base/log.h"
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
constexpr int64_t kKibibyte = 1024;
constexpr int64_t kMilli = 1000;

// One flavor for each engine, and one queue for all jobs: on each engine by priority, then first
// in, first out.
queue::Policy EnginesAsFlavors(const std::vector<std::string>& engines) {
  queue::Policy policy = queue::DefaultPolicy(engines);
  for (queue::Flavor& flavor : policy.flavors) flavor.engine = flavor.name;
  for (queue::QueueSpec& queue : policy.queues) {
    queue.order = queue::QueueOrder::kStrict;
    queue.preempt_within = queue::PreemptRule::kNever;
  }
  policy.grow = false;
  return policy;
}

// The job's queue; the default one of the policy for a job that names none.
std::string QueueOf(const queue::Policy& policy, const job::Job& job) {
  const bool named = job.queue != job::Job().queue ||
                     std::ranges::any_of(policy.queues, [&](const queue::QueueSpec& queue) {
                       return queue.name == job.queue;
                     });
  return named ? job.queue : policy.default_queue;
}

// CPU may be oversubscribed, since tasks then share it; memory and devices may not.
queue::FlavorMachines MachinesOf(const engine::Capacity& capacity) {
  queue::FlavorMachines machines;
  if (capacity.memory_bytes > 0) machines.total[1] = capacity.memory_bytes / kKibibyte;
  machines.total[2] = capacity.gpu * kMilli;
  return machines;
}

}  // namespace

struct JobAdmitter::Entry {
  JobRecord record;
  job::Job job;
  AdmissionCallbacks calls;  // empty once the job holds its resources
  int64_t serial = 0;
  queue::JobRef ref = queue::kNoIndex;  // kNoIndex: its engine's capacity is not known yet
  bool storing = false;                 // an event of it is being written
  bool admitted = false;                // decided; stored when `storing` ends
  bool told = false;                    // on_wait was called
  std::string flavor;                   // of the admission
  queue::Reason reason;                 // last stored

  bool waits() const { return calls.on_admitted != nullptr; }
  bool decidable() const { return waits() && ref != queue::kNoIndex && !storing && !admitted; }
};

JobAdmitter::JobAdmitter(JobAdmitterOptions options)
    : options_(std::move(options)),
      tasks_(options_.loop),
      policy_(options_.policy ? *options_.policy : EnginesAsFlavors(options_.engines->names())),
      scheduler_(policy_) {}

JobAdmitter::~JobAdmitter() { options_.loop->Cancel(tick_); }

void JobAdmitter::Why(const std::string& id, std::function<void(const WhyWaits&)> done) {
  const Entry* const entry = Find(id);
  if (entry == nullptr || !entry->decidable()) return done({});
  // The search tries each change in a copy; this thread serves all jobs meanwhile.
  auto copy = std::make_shared<const queue::Scheduler>(scheduler_);
  options_.store_threads->Execute([copy, ref = entry->ref, done = std::move(done)] {
    WhyWaits answer;
    answer.waits = true;
    answer.reason = queue::ReasonText(copy->state(), ref, copy->ReasonOf(ref));
    for (const queue::Change& change : queue::ChangesThatStart(*copy, ref))
      answer.changes.push_back(queue::ChangeText(*copy, ref, change));
    done(answer);
  });
}

queue::Millis JobAdmitter::Now() const {
  return std::chrono::duration_cast<queue::Millis>(options_.clock->Wall().time_since_epoch());
}

JobAdmitter::Entry* JobAdmitter::Find(const std::string& id) {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second.get();
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
  if (Enter(holding)) Restore(holding, flavor);
  if (tick_ == 0) tick_ = options_.loop->After(kTick, [this] { Tick(); });
}

void JobAdmitter::Join(const JobRecord& record, const job::Job& job, Entry* entry) {
  entry->record = record;
  entry->job = job;
  entry->serial = ++serial_;
}

// Makes a flavor for an engine that was added after the start.
void JobAdmitter::AddFlavor(const std::string& engine) {
  if (options_.policy) return;
  std::vector<std::string> names;
  for (const queue::Flavor& flavor : policy_.flavors) names.push_back(flavor.name);
  if (std::ranges::find(names, engine) != names.end()) return;
  names.push_back(engine);
  policy_ = EnginesAsFlavors(names);
  const Status set = scheduler_.SetPolicy(policy_, Now());
  if (!set.ok()) LogWarning("engine {}: {}", engine, set.message());
}

// Gives the job to the scheduler. False if it does not take it.
bool JobAdmitter::Enter(Entry* entry) {
  const JobRecord& record = entry->record;
  AddFlavor(record.engine);
  queue::JobSpec spec = queue::SpecOf(entry->job);
  spec.id = record.id;
  spec.name = record.name;
  spec.user = record.user;
  spec.team = record.team;
  spec.engine = record.engine;
  spec.order = record.order;
  spec.queue = options_.policy ? QueueOf(policy_, entry->job) : policy_.default_queue;
  if (!options_.policy) spec.flavors = {record.engine};
  // Every job has the size of its file: other sizes are not carried out yet.
  queue::Request& request = spec.request;
  request = {{}, request.At(spec.tasks), 1, 1, request.largest_task};
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
  for (const std::string& one : flavors) {
    if (!one.empty()) held = scheduler_.Restore(entry->ref, one, 1, Now());
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
  AddFlavor(engine);
  // The capacity of an engine with several flavors is not known by flavor: the quotas limit it.
  std::vector<std::string> flavors;
  for (const queue::Flavor& flavor : policy_.flavors)
    if (flavor.engine == engine) flavors.push_back(flavor.name);
  if (flavors.size() == 1) scheduler_.SetMachines(flavors[0], MachinesOf(*capacity), Now());
  for (const std::string& id : waiting) {
    if (Entry* const entry = Find(id)) Enter(entry);
  }
  Kick();
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
    const auto id = ids_.find(decision.job);
    Entry* const entry = id == ids_.end() ? nullptr : Find(id->second);
    if (entry == nullptr || !entry->waits()) continue;
    if (decision.action == queue::Action::kAdmit) {
      entry->admitted = true;
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
  const auto id = ids_.find(decision.job);
  if (id == ids_.end() || !options_.preempt) return;
  const JobRecord& victim = Find(id->second)->record;
  const auto other = ids_.find(decision.beneficiary);
  const Entry* const taker = other == ids_.end() ? nullptr : Find(other->second);
  const std::string reason =
      taker != nullptr
          ? "preempted for " + (taker->record.team == victim.team
                                    ? taker->record.name + " (" + taker->record.id + ")"
                                    : "a job of team " + taker->record.team)
          : "preempted: " + queue::ReasonText(scheduler_.state(), decision.job, decision.reason);
  options_.preempt(id->second, reason);
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
void JobAdmitter::Append(Entry* entry, const Event& event, AppendDone done) {
  entry->storing = true;
  AppendCheck check;
  check.after = entry->record.last_seq;
  options_.store_threads->Execute([this, store = options_.store, id = entry->record.id,
                                   serial = entry->serial, event, check, done = std::move(done),
                                   poster = tasks_.poster()] {
    const Status stored = store->AppendChecked(id, {&event, 1}, Durability::kWritten, check);
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
  if (options_.policy) admitted.body[kFlavorField] = entry->flavor;
  Append(entry, admitted, &JobAdmitter::OnAdmissionStored);
}

void JobAdmitter::OnAdmissionStored(Entry* entry, const Status& stored,
                                    const Result<JobRecord>& record) {
  const std::string id = entry->record.id;
  if (stored.ok() && record.ok()) {
    entry->record = *record;
    const auto admitted = std::move(entry->calls.on_admitted);
    entry->calls = {};
    return admitted(*record);
  }
  if (stored.code() == Code::kAborted && record.ok()) {
    // Without a new event it was the fence: another server may lead. Tick tries again.
    if (record->last_seq != entry->record.last_seq) Compare(id, record);
    return;
  }
  Fail(id, Status(Code::kInternal, (stored.ok() ? record.status() : stored).message()));
}

// ---- Reasons ------------------------------------------------------------------------------------

void JobAdmitter::TellReason(Entry* entry) {
  const queue::Reason reason = scheduler_.ReasonOf(entry->ref);
  const std::string why = queue::ReasonText(scheduler_.state(), entry->ref, reason);
  const bool first = !std::exchange(entry->told, true);
  entry->reason = reason;
  const Status waiting = entry->calls.on_wait(why, first);
  if (!waiting.ok()) return Fail(entry->record.id, waiting);
  Append(entry, StateEvent(options_.clock->Wall(), JobState::kPending, why),
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
  if (waiting.empty() && (!options_.policy || entries_.empty())) return;
  for (const std::string& id : waiting) {
    Entry* const entry = Find(id);
    if (entry != nullptr && entry->admitted && !entry->storing) Admit(entry);
    if (entry == nullptr || !entry->decidable() || !entry->told) continue;
    const queue::Reason reason = scheduler_.ReasonOf(entry->ref);
    const bool same = reason.code == entry->reason.code && reason.other == entry->reason.other;
    if (!same && stored++ < kReasonsStored) TellReason(entry);
  }
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
  Wait(*record, *job, std::move(calls));
  if (Entry* const again = Find(id)) again->told = told;
}

}  // namespace shoal::controller
