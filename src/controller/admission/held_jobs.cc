#include "controller/admission/held_jobs.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "queue/core/job_spec.h"

namespace shoal::controller {
namespace {

// A job gets its stop_grace and this to stop for another, then it is asked again.
constexpr Duration kStopPatience = std::chrono::seconds(5);
// After so many requests others are asked, and the job is left alone for a while.
constexpr int kStopRequests = 2;
constexpr Duration kKept = std::chrono::minutes(5);
// Distance of requests for more tasks that a coordinator refuses; it doubles each time.
constexpr Duration kGrowAgain = std::chrono::minutes(1);
constexpr int kMostDoublings = 6;

}  // namespace

// ---- Stopping -----------------------------------------------------------------------------------

queue::Millis HeldJobs::QueueTime() const {
  return std::chrono::duration_cast<queue::Millis>(options_->clock->Wall().time_since_epoch());
}

void HeldJobs::Stop(AdmitterEntry* entry, const std::string& reason) {
  entry->stop_reason = reason;
  entry->asked = 0;
  entry->refusal.clear();
  AskAgain(entry);
}

// Asks the job to stop, for the first time or again, later each time.
void HeldJobs::AskAgain(AdmitterEntry* entry) {
  const Duration patience = Duration(entry->job.limits.stop_grace) + kStopPatience;
  entry->ask_at = options_->clock->Now() + patience * (int64_t{1} << std::min(entry->asked, 10));
  ++entry->asked;
  options_->preempt(entry->record.id, entry->stop_reason);
}

// Asks jobs again that do not stop for others; after some requests others are asked.
void HeldJobs::CheckStops() {
  for (const auto& [id, entry] : *entries_) {
    if (entry->ref == queue::kNoIndex) continue;
    const TimePoint now = options_->clock->Now();
    if (entry->grow_at != TimePoint{} && now >= entry->grow_at) {
      entry->grow_at = {};
      Recount(entry.get(), scheduler_->job(entry->ref).size);
    }
    if (entry->asked == 0) continue;
    if (scheduler_->job(entry->ref).phase != queue::Phase::kLeaving) {
      entry->asked = 0;
    } else if (now >= entry->ask_at && entry->asked < kStopRequests) {
      AskAgain(entry.get());
    } else if (now >= entry->ask_at) {
      entry->asked = 0;
      Keep(entry.get());
    }
  }
}

// The job goes on for a while, and others are asked to stop or shrink in its place.
void HeldJobs::Keep(AdmitterEntry* entry) {
  const Duration kept = kKept * (int64_t{1} << std::min(entry->kept++, kMostDoublings));
  LogWarning("job {} does not stop{}; others are asked in its place for {}", entry->record.id,
             entry->refusal.empty() ? "" : ": " + entry->refusal, FormatDuration(kept));
  scheduler_->Keep(entry->ref, QueueTime() + std::chrono::duration_cast<queue::Millis>(kept),
                   QueueTime());
  kick_();
}

// ---- Sizes --------------------------------------------------------------------------------------

// The bounds of the job, or the demand of its other roles, have changed.
void HeldJobs::Recount(AdmitterEntry* entry, int size) {
  queue::JobSpec spec = queue::SpecOf(entry->job);
  if (!entry->elastic) {
    spec.request = {{}, spec.request.At(spec.tasks), 1, 1, spec.request.largest_task};
    size = 1;
  } else {
    spec.request = BoundsOf(spec.request, entry->history, entry->waits());
    spec.request.most = std::max(spec.request.most, size);
    if (entry->grow_at != TimePoint{}) spec.request.most = size;
  }
  scheduler_->SetRequest(entry->ref, spec.request, size, QueueTime());
  kick_();
}

void HeldJobs::Resize(AdmitterEntry* entry, int size) {
  entry->size = size;
  if (entry->waits() || !options_->resize) return;  // it starts with this size, or is resized then
  options_->resize(
      entry->record.id, entry->role, size,
      [this, id = entry->record.id, serial = entry->serial, size](const Status& answer) {
        const auto still = entries_->find(id);
        if (still != entries_->end() && still->second->serial == serial &&
            still->second->size == size)
          OnResizeAnswered(still->second.get(), size, answer);
      });
}

void HeldJobs::OnResizeAnswered(AdmitterEntry* entry, int size, const Status& answer) {
  if (answer.ok()) {
    entry->accepted = size;
    entry->refused = 0;
    entry->grow_at = {};
    return FinishShrinking(entry);
  }
  entry->refusal = answer.message();
  entry->size = entry->accepted;
  if (scheduler_->job(entry->ref).shrinking) return Keep(entry);
  LogWarning("job {} does not grow: {}", entry->record.id, answer.message());
  entry->grow_at = options_->clock->Now() +
                   kGrowAgain * (int64_t{1} << std::min(entry->refused++, kMostDoublings));
  Recount(entry, entry->accepted);
  scheduler_->Resized(entry->ref, entry->accepted, QueueTime());
}

// What a shrinking job gives back is free when its tasks have ended.
void HeldJobs::FinishShrinking(AdmitterEntry* entry) {
  const queue::JobState& job = scheduler_->job(entry->ref);
  if (!job.shrinking || !entry->tasks || entry->tasks->tasks() > job.size) return;
  scheduler_->Resized(entry->ref, job.size, QueueTime());
  kick_();
}

// A person's number is the most from now on, and the job shrinks to it at once.
void HeldJobs::OnPersonScaled(AdmitterEntry* entry, const std::string& role, int size) {
  for (job::Role& one : entry->job.roles) {
    if (one.name != role) continue;
    one.min_replicas = one.least();
    one.max_replicas = one.most();
    one.replicas = size;
  }
  if (!entry->elastic || role != entry->role) return Recount(entry, entry->size);
  entry->history.wanted = entry->size = entry->accepted = size;
  entry->refused = 0;
  entry->grow_at = {};
  Recount(entry, size);
}

void HeldJobs::OnEvent(AdmitterEntry* entry, const rendezvous::JobEvent& event, bool managed) {
  using Type = rendezvous::JobEvent::Type;
  if (entry == nullptr || entry->ref == queue::kNoIndex || entry->waits()) return;
  if (entry->asked > 0 && rendezvous::RefusalOf(event) == rendezvous::RequestRefusal::kSuspend)
    entry->refusal = event.text;
  if (event.type != Type::kScaled && event.type != Type::kTask) return;
  if (entry->tasks) entry->tasks->ApplyEvent(event);
  const std::string ours = std::string("(") + kByTheQueue + ")";
  if (managed && event.type == Type::kScaled && !event.text.ends_with(ours))
    OnPersonScaled(entry, event.role, static_cast<int>(GetIntOr(event.body, "replicas", 0)));
  FinishShrinking(entry);
}

Status HeldJobs::CheckScale(const AdmitterEntry* entry, const std::string& role, int size) const {
  if (entry == nullptr || entry->waits() || entry->ref == queue::kNoIndex) return Status::Ok();
  const queue::JobState& job = scheduler_->job(entry->ref);
  const job::Role* const found = entry->job.FindRole(role);
  if (found == nullptr || job.phase != queue::Phase::kRunning) return Status::Ok();
  const bool counted = entry->elastic && role == entry->role;
  const int more = size - (counted ? job.size : found->replicas);
  if (more <= 0) return Status::Ok();
  const queue::Amounts unit = queue::AmountsOf(found->resources);
  const queue::Amounts room = scheduler_->state().Available(job.flavor, job.leaf);
  int64_t fits = more;
  for (size_t r = 0; r < queue::kResources; ++r)
    if (unit[r] > 0) fits = std::min(fits, std::max<int64_t>(0, room[r]) / unit[r]);
  if (fits >= more) return Status::Ok();
  return FailedPrecondition("not scaled: " + role + ": queue " + job.spec.queue + " has room for " +
                            std::to_string(fits) + " more now, got " + std::to_string(more) +
                            " more; `shoal queue` shows who uses it");
}

}  // namespace shoal::controller
