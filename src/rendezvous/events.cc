#include "rendezvous/events.h"

#include <set>

#include "base/clock.h"
#include "rendezvous/log_segment.h"

namespace shoal::rendezvous {
namespace {

JobEvent OfTask(const Fact& fact, const CoordinatorCore& core, job::TaskState state) {
  JobEvent event;
  event.type = JobEvent::Type::kTask;
  event.role = core.role_of(fact.task).name;
  event.index = core.index_of(fact.task);
  event.attempt = fact.attempt;
  event.task_state = state;
  event.text = fact.text;
  event.end = fact.end;
  event.last_line = fact.last_line;
  event.will_restart = fact.restart;
  return event;
}

JobEvent OfHost(const Fact& fact, const std::string& role) {
  JobEvent event;
  event.type = JobEvent::Type::kExcluded;
  event.role = role;
  event.body = {{"host", fact.node}};
  event.text = "host " + fact.node + " is excluded for role " + role + ": " + fact.text;
  return event;
}

JobEvent OfJob(job::JobState state, const std::string& text) {
  JobEvent event;
  event.job_state = state;
  event.text = text;
  return event;
}

std::optional<JobEvent> Translate(const Fact& fact, const CoordinatorCore& core) {
  JobEvent event;
  switch (fact.kind) {
    case Fact::Kind::kJob:
      return OfJob(fact.state, fact.text);
    case Fact::Kind::kResumed:
      return OfJob(job::JobState::kStarting, "resumed");
    case Fact::Kind::kRestart:
    case Fact::Kind::kReady:
      event.type = JobEvent::Type::kNote;
      event.text =
          fact.kind == Fact::Kind::kRestart ? fact.text : core.NameOf(fact.task) + " is ready";
      return event;
    case Fact::Kind::kScale:
      event.type = JobEvent::Type::kScaled;
      event.role = core.role_of(fact.task).name;
      event.body = {{"replicas", fact.replicas}};
      event.text = "role " + event.role + " is to have " + std::to_string(fact.replicas) +
                   (fact.replicas == 1 ? " task" : " tasks") +
                   (fact.text.empty() ? "" : " (" + fact.text + ")");
      return event;
    case Fact::Kind::kExcluded:
      return OfHost(fact, core.role_of(fact.task).name);
    case Fact::Kind::kPlaced:
      return std::nullopt;
    case Fact::Kind::kLeased:
      return OfTask(fact, core, job::TaskState::kJoined);
    case Fact::Kind::kUnplaced:
      return OfTask(fact, core, job::TaskState::kCreated);
    case Fact::Kind::kStarted:
      return OfTask(fact, core, job::TaskState::kRunning);
    case Fact::Kind::kDraining:
      return OfTask(fact, core, job::TaskState::kDraining);
    case Fact::Kind::kEnded:
      return OfTask(fact, core, job::TaskState::kEnded);
    case Fact::Kind::kGeneration:
      event.type = JobEvent::Type::kGeneration;
      event.generation = fact.generation;
      event.body = fact.body;
      return event;
    case Fact::Kind::kResult:
      event = OfTask(fact, core, job::TaskState::kRunning);
      event.type = JobEvent::Type::kResult;
      event.body = fact.body;
      return event;
    case Fact::Kind::kStalled:
    case Fact::Kind::kMoving:
      event.type =
          fact.kind == Fact::Kind::kStalled ? JobEvent::Type::kStalled : JobEvent::Type::kMoving;
      event.text = fact.text;
      event.body = fact.body;
      return event;
    case Fact::Kind::kVerdict:
      event.type = JobEvent::Type::kVerdict;
      event.verdict = fact.verdict;
      return event;
  }
  return std::nullopt;
}

}  // namespace

std::optional<JobEvent> EventOf(const Fact& fact, const CoordinatorCore& core) {
  auto event = Translate(fact, core);
  if (!event) return event;
  event->seq = fact.seq;
  event->at = fact.wall;
  return event;
}

JobEvent EventOfTask(const CoordinatorCore& core, int task, int attempt) {
  JobEvent event;
  event.at = FormatWall(RealClock::Get()->Wall());
  event.role = core.role_of(task).name;
  event.index = core.index_of(task);
  event.attempt = attempt;
  return event;
}

JobEvent NoteEvent(const std::string& text) {
  JobEvent event;
  event.type = JobEvent::Type::kNote;
  event.at = FormatWall(RealClock::Get()->Wall());
  event.text = text;
  return event;
}

void RestoreFeed(const std::vector<Fact>& facts, int64_t resumed, const CoordinatorCore& core,
                 const std::filesystem::path& logs, EventFeed* feed) {
  const auto key_of = [&core](const Fact& fact) {
    return LogKey{core.role_of(fact.task).name, core.index_of(fact.task), fact.attempt};
  };
  std::set<LogKey> told;
  for (const Fact& fact : facts) {
    const bool before = fact.seq <= resumed && fact.kind == Fact::Kind::kStarted;
    if (before) told.insert(key_of(fact));
  }
  for (const auto& entry : std::filesystem::directory_iterator(logs)) {
    const auto key = ParseLogFileName(entry.path().filename().string());
    if (!key || told.contains(*key)) continue;
    feed->LogGrew(*key, static_cast<int64_t>(entry.file_size()));
  }
  for (const Fact& fact : facts) {
    const bool holds = fact.kind == Fact::Kind::kScale || fact.kind == Fact::Kind::kExcluded;
    if (fact.seq <= resumed && !holds) continue;
    if (const auto event = EventOf(fact, core)) feed->Add(*event);
    if (fact.kind == Fact::Kind::kEnded) feed->LogEnded(key_of(fact));
  }
}

}  // namespace shoal::rendezvous
