#include "api/operator/reconciler.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace shoal::api {
namespace {

constexpr int kMaxRounds = 16;  // of one call: more would be a disagreement with the API server
constexpr Duration kFirstDelay = std::chrono::seconds(1);
constexpr Duration kLongestDelay = std::chrono::seconds(60);
// Policies, queues and teams may change without a change of the object.
constexpr Duration kRefusalAge = std::chrono::seconds(60);
// Groups end, and resources are removed, a little after the last event.
constexpr Duration kPollInterval = std::chrono::seconds(2);

}  // namespace

void Reconciler::Put(const ShoalJob& object) {
  const MutexLock lock(mu_);
  objects_[object.key] = object;
}

void Reconciler::Remove(const ShoalJob& object) {
  const MutexLock lock(mu_);
  const auto found = objects_.find(object.key);
  // One of the same name may have been made since.
  if (found != objects_.end() && found->second.uid == object.uid) objects_.erase(found);
}

std::vector<ResourceKey> Reconciler::Replace(const std::string& name_space,
                                             const std::vector<ShoalJob>& objects) {
  const MutexLock lock(mu_);
  std::vector<ResourceKey> touched;
  std::erase_if(objects_, [&](const auto& entry) {
    if (!name_space.empty() && entry.first.name_space != name_space) return false;
    touched.push_back(entry.first);
    return true;
  });
  for (const ShoalJob& object : objects) {
    objects_[object.key] = object;
    touched.push_back(object.key);
  }
  std::ranges::sort(touched);
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  return touched;
}

std::optional<ShoalJob> Reconciler::Find(const ResourceKey& key) const {
  const MutexLock lock(mu_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<ResourceKey> Reconciler::Keys() const {
  const MutexLock lock(mu_);
  std::vector<ResourceKey> keys;
  for (const auto& [key, object] : objects_) keys.push_back(key);
  return keys;
}

std::optional<ResourceKey> Reconciler::KeyOf(const std::string& job_id) const {
  const MutexLock lock(mu_);
  const auto found = keys_.find(job_id);
  return found == keys_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Duration> Reconciler::Reconcile(const ResourceKey& key) {
  for (int round = 0; round < kMaxRounds; ++round) {
    const std::optional<ShoalJob> object = Find(key);
    if (!object) {
      memories_.erase(key);
      const MutexLock lock(mu_);
      std::erase_if(keys_, [&](const auto& entry) { return entry.second == key; });
      return std::nullopt;
    }
    Memory& memory = memories_[key];
    if (memory.uid != object->uid) {
      memory = Memory();
      memory.uid = object->uid;
    }
    switch (Look(*object, &memory)) {
      case Round::kAgain:
      case Round::kGone:
        continue;
      case Round::kLater:
        return Delay(&memory);
      case Round::kDone:
        if (!memory.refusal) memory.failures = 0;
        if (!memory.refusal) return memory.poll ? std::optional(kPollInterval) : std::nullopt;
        return IsFinalRefusal(*memory.refusal) ? kRefusalAge : Delay(&memory);
    }
  }
  LogWarning("ShoalJob {}: its status does not settle", key.text());
  return kLongestDelay;
}

Duration Reconciler::Delay(Memory* memory) const {
  Duration delay = kFirstDelay;
  for (int i = 0; i < memory->failures && delay < kLongestDelay; ++i) delay *= 2;
  ++memory->failures;
  return std::min(delay, kLongestDelay);
}

bool Reconciler::Register(const std::string& job_id, const ResourceKey& key) {
  const MutexLock lock(mu_);
  return keys_.insert_or_assign(job_id, key).second;
}

Reconciler::Round Reconciler::Look(const ShoalJob& object, Memory* memory) {
  Result<std::optional<OperatedJob>> job = options_.jobs->Find(object);
  if (!job.ok()) {
    LogWarning("ShoalJob {}: its job cannot be read: {}", object.key.text(),
               job.status().message());
    return Round::kLater;
  }
  // An event of the job that came before its key was known is in what is read again.
  if (job->has_value() && Register((*job)->id, object.key)) return Round::kAgain;
  const OperatedJob* const known = job->has_value() ? &**job : nullptr;
  if (known == nullptr && !object.unreadable.empty() && !object.has_finalizer()) {
    Announce(object, memory);
    return Round::kDone;
  }
  memory->poll = known != nullptr && (job::IsFinal(known->state) ? !known->released : known->group);
  if (known != nullptr) memory->refusal.reset();
  if (memory->generation != object.generation) {
    memory->refusal.reset();
    memory->change_error.reset();
    memory->generation = object.generation;
  }
  const bool old = options_.clock->Now() - memory->refused_at >= kRefusalAge ||
                   (memory->refusal && !IsFinalRefusal(*memory->refusal) &&
                    options_.clock->Now() - memory->refused_at >= kFirstDelay);
  DecisionInput input{.object = object,
                      .job = known,
                      .server = options_.server,
                      .refusal = old ? std::nullopt : memory->refusal,
                      .change_error = memory->change_error,
                      .stop_sent = memory->stop_sent,
                      .now = options_.clock->Wall()};
  const Decision decision = Decide(input);
  if (const Status done = Perform(decision, object, known, memory); !done.ok())
    return AfterError(done, decision, object, memory);
  // A change of the finalizers has changed the version: the next round writes the status.
  const bool of_finalizers =
      decision.step == Step::kAddFinalizer || decision.step == Step::kRemoveFinalizer;
  if (of_finalizers || decision.step == Step::kSubmit) return Round::kAgain;
  if (decision.status == object.status)
    return decision.step == Step::kNone ? Round::kDone : Round::kAgain;
  const Result<ShoalJob> written = options_.objects->SetStatus(object, decision.status);
  if (!written.ok()) return AfterError(written.status(), {}, object, memory);
  Put(*written);
  Announce(*written, memory);
  return Round::kAgain;
}

Status Reconciler::Perform(const Decision& decision, const ShoalJob& object, const OperatedJob* job,
                           Memory* memory) {
  switch (decision.step) {
    case Step::kNone:
    case Step::kClaim:
      return Status::Ok();
    case Step::kAddFinalizer:
    case Step::kRemoveFinalizer: {
      // The status first: an object without finalizers may be gone at once.
      ShoalJob current = object;
      if (decision.step == Step::kRemoveFinalizer && decision.status != object.status) {
        TRY_ASSIGN(current, options_.objects->SetStatus(object, decision.status));
        Announce(current, memory);
      }
      std::vector<std::string> finalizers = current.finalizers;
      std::erase(finalizers, kFinalizer);
      if (decision.step == Step::kAddFinalizer) finalizers.emplace_back(kFinalizer);
      TRY_ASSIGN(const ShoalJob changed, options_.objects->SetFinalizers(current, finalizers));
      changed.deleting&& changed.finalizers.empty() ? Remove(changed) : Put(changed);
      return Status::Ok();
    }
    case Step::kSubmit:
      return options_.jobs->Submit(object);
    case Step::kScale:
      return options_.jobs->Scale(*job, decision.role, decision.replicas);
    case Step::kSuspend:
      return options_.jobs->Suspend(*job);
    case Step::kResume:
      return options_.jobs->Resume(*job);
    case Step::kStop: {
      const Status stopped = options_.jobs->Stop(*job);
      memory->stop_sent = stopped.ok();
      return stopped;
    }
  }
  return Status::Ok();
}

Reconciler::Round Reconciler::AfterError(const Status& error, const Decision& decision,
                                         const ShoalJob& object, Memory* memory) {
  switch (decision.step) {
    case Step::kSubmit:
      memory->refusal = error;
      memory->refused_at = options_.clock->Now();
      return Round::kAgain;
    case Step::kScale:
    case Step::kSuspend:
    case Step::kResume:
      if (!IsFinalRefusal(error)) return Round::kLater;
      memory->change_error = error;
      return Round::kAgain;
    case Step::kStop:
      return Round::kLater;
    default:
      break;
  }
  // Of the API server.
  if (error.code() == Code::kAlreadyExists || error.code() == Code::kNotFound ||
      error.code() == Code::kInvalidArgument)
    return Refresh(object);
  LogWarning("ShoalJob {}: it cannot be changed: {}", object.key.text(), error.message());
  return Round::kLater;
}

// Another client has changed or removed it.
Reconciler::Round Reconciler::Refresh(const ShoalJob& object) {
  const Result<ShoalJob> current = options_.objects->Get(object.key);
  if (current.ok()) {
    if (current->version == object.version) return Round::kLater;  // not the cause, then
    Put(*current);
    return Round::kAgain;
  }
  if (current.status().code() != Code::kNotFound) return Round::kLater;
  Remove(object);
  return Round::kGone;
}

// One event for each phase and each refusal.
void Reconciler::Announce(const ShoalJob& object, Memory* memory) {
  const bool unread = object.status.empty() && !object.unreadable.empty();
  const std::string phase = unread ? "Refused" : object.StatusText("phase");
  const std::string reason = unread ? object.unreadable : object.StatusText("reason");
  const std::string text = phase + (phase == "Pending" ? "" : reason);
  if (phase.empty() || std::exchange(memory->announced, text) == text) return;
  const bool warning = phase == "Refused" || phase == "Failed";
  const std::string id = object.StatusText("job");
  options_.objects->Announce(
      object, warning, phase,
      (id.empty() ? "" : "job " + id + ": ") + (reason.empty() ? "is " + phase : reason));
}

}  // namespace shoal::api
