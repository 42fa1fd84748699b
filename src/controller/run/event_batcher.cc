#include "controller/run/event_batcher.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/log.h"

namespace shoal::controller {
namespace {

constexpr Duration kFlushEvery = std::chrono::seconds(1);
// As for the coordinator's journal (ADR 141): a disk error may be temporary.
constexpr Duration kRetryEvery = std::chrono::milliseconds(100);
constexpr Duration kRetryFor = std::chrono::seconds(10);
constexpr Duration kRetryLater = std::chrono::seconds(2);

}  // namespace

EventBatcher::EventBatcher(EventBatcherOptions options, JobRecord record, EndedAttempts ended)
    : options_(options), record_(std::move(record)), ended_(std::move(ended)) {}

EventBatcher::~EventBatcher() {
  if (timer_ != 0) options_.loop->Cancel(timer_);
  if (retry_timer_ != 0) options_.loop->Cancel(retry_timer_);
}

// ---- Events -------------------------------------------------------------------------------------

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
  Add(StateEvent(options_.clock->Wall(), state, why));
}

void EventBatcher::SetReason(const std::string& why) {
  if (record_.reason == why) return;
  Add(StateEvent(options_.clock->Wall(), record_.state, why));
  FlushSoon();
}

void EventBatcher::AddNote(const std::string& text) {
  Add(NoteEvent(options_.clock->Wall(), text));
  FlushSoon();
}

void EventBatcher::AddEvent(const rendezvous::JobEvent& event) {
  using Type = rendezvous::JobEvent::Type;
  if (event.type == Type::kResult && !event.body.empty()) {
    MergeResults(event.body, &record_.result);
    result_seq_ = std::max(result_seq_, event.seq);
    return FlushSoon();
  }
  std::optional<Event> entry = EntryOf(event, options_.clock->Wall());
  if (!entry) return;
  const bool known = event.type == Type::kJob && record_.state == event.job_state;
  if (!known) Add(std::move(*entry));
  if (event.type == Type::kTask && event.end) ended_[{event.role, event.index}] = event.attempt;
  if (event.type == Type::kStalled || event.type == Type::kMoving)
    return Flush(Durability::kSynced);  // before whatever follows from it
  if (event.type != Type::kJob) return FlushSoon();
  // Other processes see the state running at once.
  if (event.job_state == JobState::kRunning) Flush(Durability::kWritten);
}

void EventBatcher::AddVerdict(const rendezvous::Verdict& verdict) {
  for (const rendezvous::TaskResult& result : verdict.tasks) {
    if (auto entry = EntryOf(result, ended_, options_.clock->Wall())) Add(std::move(*entry));
  }
}

void EventBatcher::End(JobState state, const std::string& reason) {
  if (state == JobState::kSucceeded) AddState(JobState::kFinishing, "");
  if (state == JobState::kSuspended) {
    AddState(state, reason);
  } else {
    result_seq_ = -1;  // the end holds the results
    Add(EndedEvent(options_.clock->Wall(), state, reason, record_.result));
  }
  Flush(Durability::kSynced);
}

// ---- Commits ------------------------------------------------------------------------------------

void EventBatcher::FlushSoon() {
  if (timer_ != 0) return;
  timer_ = options_.loop->After(kFlushEvery, [this] {
    timer_ = 0;
    Flush(Durability::kWritten);
  });
}

void EventBatcher::Flush(Durability durability) {
  if (timer_ != 0) options_.loop->Cancel(std::exchange(timer_, 0));
  // One event holds all results so far, however many events of the coordinator reported them.
  if (const int64_t seq = std::exchange(result_seq_, -1); seq >= 0) {
    Event results = ResultEvent(options_.clock->Wall(), record_.result);
    results.body[kCoordinatorSeq] = seq;
    Add(std::move(results));
  }
  if (committing_.empty()) return Commit(durability);
  const bool synced = durability == Durability::kSynced || next_flush_ == Durability::kSynced;
  next_flush_ = synced ? Durability::kSynced : Durability::kWritten;
}

void EventBatcher::Commit(Durability durability) {
  if (pending_.empty()) return;
  committing_ = std::exchange(pending_, {});
  const auto commit = [store = options_.store, id = record_.id,
                       durability](const std::vector<Event>& events) {
    Outcome outcome{store->Append(id, events, durability), {}};
    if (durability != Durability::kSynced) return outcome;
    if (Result<JobRecord> stored = store->GetJob(id); stored.ok())
      outcome.record = std::move(*stored);
    return outcome;
  };
  if (options_.executor == nullptr) return OnCommitted(commit(committing_));
  options_.executor->Execute([this, commit, events = committing_, poster = tasks_.poster()] {
    const auto outcome = std::make_shared<Outcome>(commit(events));
    poster.Post([this, outcome] { OnCommitted(std::move(*outcome)); });
  });
}

void EventBatcher::OnCommitted(Outcome outcome) {
  std::vector<Event> events = std::exchange(committing_, {});
  if (!outcome.stored.ok()) {
    // Keeps the events in memory: a full disk may have room again at the end.
    Log(LogLevel::kWarning, "{}: {}", record_.id, outcome.stored.message());
    events.insert(events.end(), std::make_move_iterator(pending_.begin()),
                  std::make_move_iterator(pending_.end()));
    pending_ = std::move(events);
  }
  const std::optional<Durability> next = std::exchange(next_flush_, std::nullopt);
  const bool all_stored = pending_.empty();
  if (all_stored && result_seq_ < 0 && outcome.record) record_ = *outcome.record;
  if (rest_done_) return ContinueRest(outcome);
  if (outcome.stored.ok() && next) Commit(*next);
}

void EventBatcher::FlushRest(std::function<void(const Status&)> done) {
  if (committing_.empty() && pending_.empty()) return done(Status::Ok());
  retry_until_ = options_.clock->Now() + kRetryFor;
  rest_done_ = std::move(done);
  if (committing_.empty()) Commit(Durability::kSynced);
}

void EventBatcher::ContinueRest(const Outcome& outcome) {
  if (outcome.stored.ok() && !pending_.empty()) return Commit(Durability::kSynced);
  // Another command may have recorded the end already.
  const bool ended = outcome.record && job::IsFinal(outcome.record->state);
  const bool fenced = outcome.stored.code() == Code::kAborted;
  const bool late = options_.clock->Now() >= retry_until_;
  if (outcome.stored.ok() || ended || fenced || give_up_ || (late && !options_.patient)) {
    const auto done = std::exchange(rest_done_, nullptr);
    return done(outcome.stored);
  }
  retry_timer_ = options_.loop->After(late ? kRetryLater : kRetryEvery, [this] {
    retry_timer_ = 0;
    Commit(Durability::kSynced);
  });
}

}  // namespace shoal::controller
