#include "controller/run/event_batcher.h"

#include "base/log.h"

namespace shoal::controller {
namespace {

constexpr Duration kFlushEvery = std::chrono::seconds(1);
// As for the coordinator's journal (ADR 141): a disk error may be temporary.
constexpr Duration kRetryEvery = std::chrono::milliseconds(100);
constexpr Duration kRetryFor = std::chrono::seconds(10);

// If several tasks report the same field, the last report counts; trainers let one task report.
void Merge(const json::object& from, json::object* into) {
  for (const auto& field : from) (*into)[field.key()] = field.value();
}

}  // namespace

EventBatcher::EventBatcher(Store* store, const Clock* clock, net::Loop* loop, std::string id)
    : store_(store), clock_(clock), loop_(loop) {
  record_.id = std::move(id);
  Reload();
}

void EventBatcher::Reload() {
  if (Result<JobRecord> stored = store_->GetJob(record_.id); stored.ok())
    record_ = std::move(*stored);
}

EventBatcher::~EventBatcher() {
  if (timer_ != 0) loop_->Cancel(timer_);
  if (retry_timer_ != 0) loop_->Cancel(retry_timer_);
}

void EventBatcher::Add(Event event) {
  // record_ is ahead of the store by the pending events; ApplyEvent produces both.
  event.seq = record_.last_seq + 1;
  if (const Status applied = ApplyEvent(event, &record_); !applied.ok()) {
    Log(LogLevel::kDebug, "{}: not recorded: {}", record_.id, applied.message());
    return;
  }
  pending_.push_back(std::move(event));
}

void EventBatcher::AddState(JobState state, const std::string& why) {
  if (record_.state == state) return;
  Add(StateEvent(clock_->Wall(), state, why));
}

void EventBatcher::SetReason(const std::string& why) {
  if (record_.reason == why) return;
  Add(StateEvent(clock_->Wall(), record_.state, why));
  FlushSoon();
}

void EventBatcher::AddNote(const std::string& text) {
  Add(NoteEvent(clock_->Wall(), text));
  FlushSoon();
}

void EventBatcher::AddEvent(const rendezvous::JobEvent& event) {
  using Type = rendezvous::JobEvent::Type;
  if (event.type == Type::kJob && !job::IsFinal(event.job_state)) {
    AddState(event.job_state, event.text);
    // Other processes see the state running at once.
    if (event.job_state == JobState::kRunning) (void)Flush(Durability::kWritten);
  } else if (event.type == Type::kTask) {
    TaskRecord task{event.role, event.index,        event.attempt,  event.task_state,
                    event.end,  event.will_restart, event.last_line};
    Add(TaskEvent(clock_->Wall(), task));
    FlushSoon();
  } else if (event.type == Type::kStalled || event.type == Type::kMoving) {
    const WallTime now = clock_->Wall();
    Add(event.type == Type::kStalled ? StalledEvent(now, event.text, event.body)
                                     : MovingEvent(now));
    (void)Flush(Durability::kSynced);  // before whatever follows from it
  } else if (event.type == Type::kScaled) {
    AddNote(event.text);
  } else if (event.type == Type::kExcluded) {
    Add(ExcludedEvent(clock_->Wall(), event.role, GetStringOr(event.body, "host", ""), event.text));
    FlushSoon();
  } else if (event.type == Type::kResult) {
    Merge(event.body, &record_.result);
  }
}

void EventBatcher::AddVerdict(const rendezvous::Verdict& verdict) {
  for (const rendezvous::TaskResult& result : verdict.tasks) {
    TaskRecord task;
    task.role = result.role;
    task.index = result.index;
    task.attempt = result.attempts > 0 ? result.attempts - 1 : 0;
    task.state = job::TaskState::kEnded;
    task.end = result.end;
    Add(TaskEvent(clock_->Wall(), task));
  }
}

void EventBatcher::FlushSoon() {
  if (timer_ != 0) return;
  timer_ = loop_->After(kFlushEvery, [this] {
    timer_ = 0;
    (void)Flush(Durability::kWritten);
  });
}

Status EventBatcher::Flush(Durability durability) {
  if (timer_ != 0) loop_->Cancel(std::exchange(timer_, 0));
  if (pending_.empty()) return Status::Ok();
  const Status stored = store_->Append(record_.id, pending_, durability);
  // Keeps the events in memory: a full disk may have room again at the end.
  if (!stored.ok()) Log(LogLevel::kWarning, "{}: {}", record_.id, stored.message());
  if (stored.ok()) pending_.clear();
  return stored;
}

void EventBatcher::End(JobState state, const std::string& reason) {
  if (state == JobState::kSucceeded) AddState(JobState::kFinishing, "");
  if (state == JobState::kSuspended) {
    AddState(state, reason);
  } else {
    Add(EndedEvent(clock_->Wall(), state, reason, record_.result));
  }
  if (Flush(Durability::kSynced).ok()) Reload();
}

void EventBatcher::FlushRest(std::function<void(const Status&)> done) {
  if (pending_.empty()) return done(Status::Ok());
  RetryFlush(clock_->Now() + kRetryFor, std::move(done));
}

void EventBatcher::RetryFlush(TimePoint until, std::function<void(const Status&)> done) {
  const Status stored = store_->Append(record_.id, pending_, Durability::kSynced);
  if (stored.ok()) {
    pending_.clear();
    Reload();
    return done(stored);
  }
  // Another command may have recorded the end already.
  const Result<JobRecord> other = store_->GetJob(record_.id);
  const bool ended = other.ok() && job::IsFinal(other->state);
  if (ended || give_up_ || clock_->Now() >= until) return done(stored);
  retry_timer_ = loop_->After(kRetryEvery, [this, until, done = std::move(done)]() mutable {
    retry_timer_ = 0;
    RetryFlush(until, std::move(done));
  });
}

}  // namespace shoal::controller
