#include "controller/store/coordinator_events.h"

#include <algorithm>

#include "base/json.h"

namespace shoal::controller {
namespace {

using Type = rendezvous::JobEvent::Type;

std::optional<Event> BareEntryOf(const rendezvous::JobEvent& event, WallTime now) {
  if (event.type == Type::kJob && !job::IsFinal(event.job_state))
    return StateEvent(now, event.job_state, event.text);
  if (event.type == Type::kTask) {
    return TaskEvent(now, {event.role, event.index, event.attempt, event.task_state, event.end,
                           event.will_restart, event.last_line});
  }
  if (event.type == Type::kStalled) return StalledEvent(now, event.text, event.body);
  if (event.type == Type::kMoving) return MovingEvent(now);
  if (event.type == Type::kScaled) {
    return ScaledNoteEvent(now, event.text, event.role, GetIntOr(event.body, "replicas", 0));
  }
  if (event.type == Type::kExcluded)
    return ExcludedEvent(now, event.role, GetStringOr(event.body, "host", ""), event.text);
  return std::nullopt;
}

}  // namespace

std::optional<Event> EntryOf(const rendezvous::JobEvent& event, WallTime now) {
  std::optional<Event> entry = BareEntryOf(event, now);
  if (entry && event.seq > 0) entry->body[kCoordinatorSeq] = event.seq;
  return entry;
}

void MergeResults(const json::object& from, json::object* into) {
  for (const auto& field : from) (*into)[field.key()] = field.value();
}

int64_t LastCoordinatorSeq(std::span<const Event> entries) {
  int64_t last = 0;
  for (const Event& entry : entries)
    last = std::max(last, GetIntOr(entry.body, kCoordinatorSeq, 0));
  return last;
}

EndedAttempts EndedAttemptsOf(std::span<const Event> entries) {
  EndedAttempts ended;
  for (const Event& entry : entries) {
    if (entry.type != "task") continue;
    const Result<TaskRecord> task = ParseTask(entry.body);
    if (task.ok() && task->end) ended[{task->role, task->index}] = task->attempt;
  }
  return ended;
}

std::optional<Event> EntryOf(const rendezvous::TaskResult& result, const EndedAttempts& ended,
                             WallTime now) {
  const int attempt = result.attempts > 0 ? result.attempts - 1 : 0;
  const auto recorded = ended.find({result.role, result.index});
  if (recorded != ended.end() && recorded->second >= attempt) return std::nullopt;
  return TaskEvent(
      now, {result.role, result.index, attempt, job::TaskState::kEnded, result.end, false, ""});
}

}  // namespace shoal::controller
