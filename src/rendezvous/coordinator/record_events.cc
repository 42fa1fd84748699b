#include "rendezvous/coordinator/record_events.h"

#include <set>

#include "base/clock.h"
#include "rendezvous/logs/log_archive.h"
#include "rendezvous/logs/log_segment.h"

namespace shoal::rendezvous {
namespace {

JobEvent OfTask(const JournalRecord& record, const CoordinatorCore& core, job::TaskState state) {
  JobEvent event;
  event.type = JobEvent::Type::kTask;
  event.role = core.role_of(record.task).name;
  event.index = core.tasks().index_of(record.task);
  event.attempt = record.attempt;
  event.task_state = state;
  event.text = record.text;
  event.end = record.end;
  event.last_line = record.last_line;
  event.will_restart = record.restart;
  return event;
}

JobEvent OfHost(const JournalRecord& record, const std::string& role) {
  JobEvent event;
  event.type = JobEvent::Type::kExcluded;
  event.role = role;
  event.body = {{"host", record.node}};
  event.text = "host " + record.node + " is excluded for role " + role + ": " + record.text;
  return event;
}

JobEvent OfJob(job::JobState state, const std::string& text) {
  JobEvent event;
  event.job_state = state;
  event.text = text;
  return event;
}

std::optional<JobEvent> Translate(const JournalRecord& record, const CoordinatorCore& core) {
  JobEvent event;
  switch (record.kind) {
    case JournalRecord::Kind::kJob:
      return OfJob(record.state, record.text);
    case JournalRecord::Kind::kResumed:
      return OfJob(job::JobState::kStarting, "resumed");
    case JournalRecord::Kind::kRestart:
    case JournalRecord::Kind::kReady:
      event.type = JobEvent::Type::kNote;
      event.text = record.kind == JournalRecord::Kind::kRestart
                       ? record.text
                       : core.NameOf(record.task) + " is ready";
      return event;
    case JournalRecord::Kind::kScale:
      event.type = JobEvent::Type::kScaled;
      event.role = core.role_of(record.task).name;
      event.body = {{"replicas", record.replicas}};
      event.text = "role " + event.role + " is to have " + std::to_string(record.replicas) +
                   (record.replicas == 1 ? " task" : " tasks") +
                   (record.text.empty() ? "" : " (" + record.text + ")");
      return event;
    case JournalRecord::Kind::kExcluded:
      return OfHost(record, core.role_of(record.task).name);
    case JournalRecord::Kind::kLauncherAssigned:
      return std::nullopt;
    case JournalRecord::Kind::kLeased:
      return OfTask(record, core, job::TaskState::kJoined);
    case JournalRecord::Kind::kLauncherLost:
      return OfTask(record, core, job::TaskState::kCreated);
    case JournalRecord::Kind::kStarted:
      return OfTask(record, core, job::TaskState::kRunning);
    case JournalRecord::Kind::kDraining:
      return OfTask(record, core, job::TaskState::kDraining);
    case JournalRecord::Kind::kEnded:
      return OfTask(record, core, job::TaskState::kEnded);
    case JournalRecord::Kind::kGeneration:
      event.type = JobEvent::Type::kGeneration;
      event.generation = record.generation;
      event.body = record.body;
      return event;
    case JournalRecord::Kind::kResult:
      event = OfTask(record, core, job::TaskState::kRunning);
      event.type = JobEvent::Type::kResult;
      event.body = record.body;
      return event;
    case JournalRecord::Kind::kStalled:
    case JournalRecord::Kind::kMoving:
      event.type = record.kind == JournalRecord::Kind::kStalled ? JobEvent::Type::kStalled
                                                                : JobEvent::Type::kMoving;
      event.text = record.text;
      event.body = record.body;
      return event;
    case JournalRecord::Kind::kVerdict:
      event.type = JobEvent::Type::kVerdict;
      event.verdict = record.verdict;
      return event;
  }
  return std::nullopt;
}

}  // namespace

std::optional<JobEvent> EventOf(const JournalRecord& record, const CoordinatorCore& core) {
  auto event = Translate(record, core);
  if (!event) return event;
  event->seq = record.seq;
  event->at = record.wall;
  return event;
}

JobEvent EventOfTask(const CoordinatorCore& core, int task, int attempt) {
  JobEvent event;
  event.at = FormatWall(RealClock::Get()->Wall());
  event.role = core.role_of(task).name;
  event.index = core.tasks().index_of(task);
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

void RestorePublisher(const std::vector<JournalRecord>& records, int64_t resumed,
                      const CoordinatorCore& core, const std::filesystem::path& logs,
                      EventPublisher* publisher) {
  const auto key_of = [&core](const JournalRecord& record) {
    return LogKey{core.role_of(record.task).name, core.tasks().index_of(record.task),
                  record.attempt};
  };
  std::set<LogKey> told;
  for (const JournalRecord& record : records) {
    const bool before = record.seq <= resumed && record.kind == JournalRecord::Kind::kStarted;
    if (before) told.insert(key_of(record));
  }
  for (const auto& entry : std::filesystem::directory_iterator(logs)) {
    const std::string name = entry.path().filename().string();
    auto key = ParseLogFileName(name);
    if (!key) key = ParseArchiveFileName(name);
    if (!key || told.contains(*key)) continue;
    publisher->LogGrew(*key, LogSize(logs, *key).value_or(0));
  }
  for (const JournalRecord& record : records) {
    const bool holds =
        record.kind == JournalRecord::Kind::kScale || record.kind == JournalRecord::Kind::kExcluded;
    if (record.seq <= resumed && !holds) continue;
    if (const auto event = EventOf(record, core)) publisher->Add(*event);
    if (record.kind == JournalRecord::Kind::kEnded) publisher->LogEnded(key_of(record));
  }
}

}  // namespace shoal::rendezvous
