#include "controller/run/stored_run.h"

#include <algorithm>
#include <climits>
#include <optional>
#include <utility>

#include "base/json.h"
#include "job/spec/json.h"

namespace shoal::controller {
namespace {

using Type = rendezvous::JobEvent::Type;

// The coordinator's event that a stored one stands for, as far as it concerns the membership.
std::optional<rendezvous::JobEvent> MembershipEventOf(const Event& stored) {
  rendezvous::JobEvent event;
  event.role = GetStringOr(stored.body, "role", "");
  if (stored.type == "task") {
    const Result<TaskRecord> task = ParseTask(stored.body);
    if (!task.ok()) return std::nullopt;  // a damaged record
    event.type = Type::kTask;
    event.index = task->index;
    event.attempt = task->attempt;
    event.task_state = task->state;
    event.end = task->end;
    event.will_restart = task->will_restart;
    return event;
  }
  event.body = stored.body;
  if (stored.type == "excluded") {
    event.type = Type::kExcluded;
    return event;
  }
  if (stored.type != "note" || !stored.body.contains("replicas")) return std::nullopt;
  event.type = Type::kScaled;
  return event;
}

}  // namespace

Result<StoredRun> LoadRun(Store* store, const std::string& id) {
  StoredRun run;
  TRY_ASSIGN(run.record, store->GetJob(id));
  auto job = job::FromJson(run.record.job);
  if (!job.ok()) return job.status().With("job " + id);
  run.job = std::move(*job);
  if (run.record.state != JobState::kPending) {
    TRY_ASSIGN(run.events, store->ReadEvents(id, 0, INT_MAX));
    return run;
  }
  const auto elastic = [](const job::Role& role) { return role.elastic(); };
  if (std::ranges::any_of(run.job.roles, elastic)) {
    TRY_ASSIGN(run.log, store->ReadEvents(id, 0, INT_MAX));
  }
  return run;
}

DesiredMembership MembershipAfter(const job::Job* job, std::span<const Event> events) {
  DesiredMembership membership(job);
  for (const Event& stored : events) {
    if (const auto event = MembershipEventOf(stored)) (void)membership.ApplyEvent(*event);
  }
  return membership;
}

}  // namespace shoal::controller
