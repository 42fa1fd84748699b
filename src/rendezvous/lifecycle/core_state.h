// What all rules of the coordinator share: the job, its tasks, the phase the job is in, the records
// written and the actions emitted so far. Owned by CoordinatorCore; the rule classes hold a
// pointer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "framework/cluster.h"
#include "job/spec/job.h"
#include "rendezvous/lifecycle/core_events.h"
#include "rendezvous/lifecycle/task_table.h"

namespace shoal::rendezvous {

// Not thread-safe, not copyable. Fields under "from records" change only while a record is applied.
struct CoreState {
  using Applier = std::function<Status(const JournalRecord&)>;
  // `apply` changes the state by one record; it is called by Record.
  CoreState(job::Job the_job, CoreLimits the_limits, Applier the_applier)
      : job(std::move(the_job)), limits(the_limits), apply(std::move(the_applier)), tasks(&job) {}
  CoreState(const CoreState&) = delete;
  CoreState& operator=(const CoreState&) = delete;

  // A record of this kind about a task (-1: about the job), with the task's current attempt.
  JournalRecord RecordFor(JournalRecord::Kind kind, int task) const;
  // Numbers the record, applies it and emits it for the journal. Gives its number.
  int64_t Record(JournalRecord record);
  // Appends an action; with a task it is addressed to that task's launcher. The reference is valid
  // until the next call.
  Action& Emit(Action::Kind kind, int task = -1);
  // Records how the job will end, and drains it. Nothing if that was decided before.
  void DecideVerdict(job::JobState state, const std::string& reason, bool did_gather = true);
  // The current cluster description. O(tasks).
  framework::ClusterDescription Cluster() const;

  bool suspending() const { return decided == job::JobState::kSuspended; }
  // The job was told to stop or its result is known: no program is started any more.
  bool ending() const { return stop != StopMode::kNone || decided; }

  // Constant after construction.
  const job::Job job;
  const CoreLimits limits;
  const Applier apply;

  // From records.
  TaskTable tasks;
  int64_t seq = 0;  // of the last record
  int64_t generation = 0;
  bool gathering = true;  // no program was started yet, or since the job was resumed
  Millis gather_from{0};
  int resumes = 0;
  job::JobState job_state = job::JobState::kStarting;
  StopMode stop = StopMode::kNone;
  std::string stop_reason;
  std::optional<job::JobState> decided;
  bool gathered = true;
  std::optional<Verdict> verdict;
  Millis last_leased{0};
  Millis running_since{0};
  int64_t ends_version = 0;  // changes with everything that the description tells besides addresses
  int64_t stall_seq = 0;     // of the last stall: drains and kills wait until it is stored

  // Of the call under way.
  Millis now{0};
  std::vector<Action> actions;
  bool reevaluate = false;   // something ended or is being stopped: CoordinatorCore::Reevaluate
  bool rescan = true;        // the next deadline is to be made from all tasks
  std::vector<int> touched;  // else from these, whose deadlines may have come nearer
};

}  // namespace shoal::rendezvous
