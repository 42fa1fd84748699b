#include "rendezvous/lifecycle/attempt_ends.h"

#include <utility>

#include "rendezvous/lifecycle/membership.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

namespace {

std::string_view ScopeName(job::RestartScope scope) {
  return scope == job::RestartScope::kJob ? "the job" : "its role";
}

}  // namespace

void AttemptEnds::On(const ProgramResult& event) {
  const auto number = state_->tasks.TaskOf(event.member);
  if (!number || state_->verdict) return;
  const Task& task = state_->tasks[*number];
  if (event.attempt != task.attempt || event.number != task.results || !task.running()) return;
  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kResult, *number);
  record.body = event.body;
  state_->Record(std::move(record));
}

void AttemptEnds::On(const ProgramReady& event) {
  const auto number = state_->tasks.TaskOf(event.member);
  if (!number) return;
  Task& task = state_->tasks[*number];
  task.launcher->heard = state_->now;
  if (task.program != ProgramState::kRunning || event.attempt != task.attempt) return;
  state_->Record(state_->RecordFor(JournalRecord::Kind::kReady, *number));
  state_->reevaluate = true;
}

void AttemptEnds::On(const ProgramEnded& event) {
  const auto number = state_->tasks.TaskOf(event.member);
  if (!number) return;
  Task& task = state_->tasks[*number];
  task.launcher->heard = state_->now;
  const bool draining = task.state == job::TaskState::kDraining;
  if (task.running() && event.attempt == task.attempt) {
    // A launcher that was told to stop starts nothing any more: the task needs another one.
    if (!event.interrupted.empty() && !draining)
      return membership_->LoseLauncher(*number, event.interrupted, &event);
    EndAttempt(*number, event);
  } else if (event.attempt < task.attempt || task.final) {
    // A repetition: the acknowledgement was lost with the connection.
    Action& ack = state_->Emit(Kind::kAck, *number);
    ack.attempt = event.attempt;
    ack.after = task.ended_seq;
    if (task.final && task.released) state_->Emit(Kind::kRelease, *number).after = task.ended_seq;
  }
}

void AttemptEnds::EndAttempt(int number, const ProgramEnded& how) {
  const Task& task = state_->tasks[number];
  const bool stopping_for_restart = task.drains_for_restart() && !state_->ending();
  job::TaskEnd end = policy_->EffectiveEnd(task, how, stopping_for_restart);
  const auto kind = job::ClassifyEnd(end, task.history.ooms);
  const bool death = kind == job::EndClass::kTransient || kind == job::EndClass::kPermanent;
  const job::TaskFailure this_death{static_cast<int>(state_->generation),
                                    state_->tasks.role_of(number).name, task.index, state_->now};
  const bool consequence =
      death && end.kind != job::EndKind::kOutOfMemory && policy_->IsConsequence(this_death);
  ProgramEnded judged = how;
  judged.end = end;
  const job::RestartDecision decision = policy_->DecideRestart(task, judged, consequence);
  const bool port_conflict = !how.port_conflict.empty() && !end.ok() && !stopping_for_restart &&
                             decision.restart && policy_->MayRestartForPortConflict(task);
  if (decision.exclude_host && !port_conflict)
    exclusions_->ExcludeHostOf(number, state_->tasks.NameOf(number) + " " + job::Describe(end) +
                                           ", which " + decision.rule +
                                           " takes for its host's fault");

  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kEnded, number);
  record.end = std::move(end);
  record.last_line = how.last_line;
  record.text = decision.reason;
  record.restart = decision.restart;
  record.counted = decision.counted;
  record.ignored = decision.ignored;
  record.exhausted = decision.exhausted;
  record.consequence = consequence && !port_conflict;
  record.port_conflict = port_conflict;
  if (decision.restart) record.due = state_->now + decision.delay;
  const Millis due = record.due;
  const int attempt = task.attempt;
  const int64_t stored = state_->Record(std::move(record));
  state_->reevaluate = true;
  if (task.connected()) {
    Action& ack = state_->Emit(Kind::kAck, number);
    ack.attempt = attempt;
    ack.after = stored;
  }
  // A restarted task may have lost what others had told it about ends.
  if (task.ended_well() && policy_->any_restarted()) starter_->BroadcastEnds(stored);
  if (port_conflict) {
    RestartGroupForPortConflict(number, how.port_conflict);
  } else if (decision.restart && decision.scope != job::RestartScope::kTask) {
    JournalRecord restart = state_->RecordFor(JournalRecord::Kind::kRestart, number);
    restart.scope = decision.scope;
    restart.due = due;
    const std::string died = state_->tasks.NameOf(number) + " " + job::Describe(*task.end);
    restart.text =
        died + "; all tasks of " +
        (decision.scope == job::RestartScope::kJob ? "the job"
                                                   : state_->tasks.role_of(number).name) +
        " are started again (" + task.why_ended + ")";
    group_->RestartGroup(
        std::move(restart),
        "started again with " + std::string(ScopeName(decision.scope)) + ", as " + died);
  }
  starter_->StartIfDue(number);
}

void AttemptEnds::On(const PortConflict& event) {
  const auto number = state_->tasks.TaskOf(event.member);
  if (!number) return;
  const Task& task = state_->tasks[*number];
  if (!task.running() || event.attempt != task.attempt || task.drains_for_restart()) return;
  if (policy_->MayRestartForPortConflict(task)) {
    RestartGroupForPortConflict(*number, event.text);
    state_->reevaluate = true;
  } else if (policy_->port_conflicts() >= state_->limits.max_port_conflicts && !state_->decided &&
             state_->stop == StopMode::kNone) {
    state_->DecideVerdict(job::JobState::kFailed,
                          "ports of this job were taken " +
                              std::to_string(policy_->port_conflicts()) + " times; at last of " +
                              state_->tasks.NameOf(*number) + ": " + event.text);
  }
}

// Tasks that dialled the port may talk to another job's program, so all of them start again.
void AttemptEnds::RestartGroupForPortConflict(int number, const std::string& how) {
  JournalRecord restart = state_->RecordFor(JournalRecord::Kind::kRestart, number);
  restart.scope = job::RestartScope::kJob;
  restart.due = state_->now;
  restart.port_conflict = true;
  restart.text = state_->tasks.NameOf(number) + ": " + how +
                 "; all tasks of the job are started again with other ports, which is not counted "
                 "as a restart";
  group_->RestartGroup(std::move(restart), "started again with the job, as of " +
                                               state_->tasks.NameOf(number) + " " + how);
  const Task& task = state_->tasks[number];
  if (!task.connected()) return;
  // The launcher is assigned again, and so leases again.
  LauncherJoined hello;
  hello.member = task.launcher->member;
  hello.incarnation = task.launcher->incarnation;
  hello.instance = task.launcher->instance;
  hello.node = task.launcher->node;
  membership_->AssignLauncher(number, hello);
}

}  // namespace shoal::rendezvous
