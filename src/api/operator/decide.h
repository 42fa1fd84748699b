// What follows from a ShoalJob and the job that was submitted for it: the operator's state machine.
// Pure: the same input gives the same decision, so that repeated, lost and late events of a watch,
// and restarts, do no harm.
//
//     not submitted ─ finalizer ─▶ claim ─▶ submit ─▶ status follows the job ─▶ ended: finalizer
//     off deleted: stop ─▶ ended, and its resources removed ─▶ finalizer off
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/operator/shoal_job.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "job/execution/state.h"

namespace shoal::api {

// Numbers of a job's tasks.
struct TaskCounts {
  int total = 0;
  int running = 0;
  int succeeded = 0;
  int failed = 0;
  bool operator==(const TaskCounts&) const = default;
};

// The job of a ShoalJob, as the server knows it. Plain value.
struct OperatedJob {
  std::string id;
  job::JobState state = job::JobState::kPending;
  std::string reason;
  std::string digest;                   // FrozenDigest of what was submitted
  std::map<std::string, int> replicas;  // by role, as submitted
  bool released = true;                 // the server does not run it: its resources are removed
  bool group = false;                   // several jobs, of a matrix or sweep
  TaskCounts tasks;
  TaskCounts workers;  // of its role `worker`; of all if it has none
  WallTime submitted{};
  WallTime started{};  // epoch: not yet, as is the next
  WallTime ended{};
};

struct DecisionInput {
  const ShoalJob& object;
  const OperatedJob* job = nullptr;  // null: none was submitted, or its record is removed
  std::string server;                // id of this server's store
  // The error of the last attempt to submit this generation; none: there was none, or it is time to
  // try again.
  std::optional<Status> refusal;
  // The error of the last change that this generation asked for.
  std::optional<Status> change_error;
  bool stop_sent = false;  // this process has asked the job to stop
  WallTime now{};
};

enum class Step : uint8_t {
  kNone,
  kAddFinalizer,
  kRemoveFinalizer,
  kClaim,  // writes the status only, before the submission
  kSubmit,
  kScale,  // Decision::role, ::replicas
  kSuspend,
  kResume,
  kStop,
};

struct Decision {
  Step step = Step::kNone;
  std::string role;
  int replicas = 0;
  // What the status is to be once the step is done; equal to the object's: nothing to write.
  json::object status;
};

Decision Decide(const DecisionInput& input);

// The phase of a job's state as ShoalJob shows it, "Running".
std::string PhaseOf(job::JobState state);
// Whether an error will not go away without a change of the object.
bool IsFinalRefusal(const Status& status);

}  // namespace shoal::api
