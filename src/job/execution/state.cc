#include "job/execution/state.h"

#include <csignal>
#include <cstring>

#include "job/spec/name_table.h"

namespace shoal::job {
namespace {

constexpr NameEntry<JobState> kJobStates[] = {
    {JobState::kPending, "pending"},     {JobState::kAdmitted, "admitted"},
    {JobState::kStarting, "starting"},   {JobState::kRunning, "running"},
    {JobState::kSuspended, "suspended"}, {JobState::kFinishing, "finishing"},
    {JobState::kSucceeded, "succeeded"}, {JobState::kFailed, "failed"},
    {JobState::kCancelled, "cancelled"},
};

constexpr NameEntry<TaskState> kTaskStates[] = {
    {TaskState::kCreated, "created"}, {TaskState::kJoined, "joined"},
    {TaskState::kRunning, "running"}, {TaskState::kDraining, "draining"},
    {TaskState::kEnded, "ended"},
};

constexpr NameEntry<EndKind> kEndKinds[] = {
    {EndKind::kExit, "exit"},
    {EndKind::kSignal, "signal"},
    {EndKind::kOutOfMemory, "out of memory"},
    {EndKind::kLost, "lost"},
    {EndKind::kCancelled, "cancelled"},
};

TaskEnd Make(EndKind kind, std::string detail) {
  TaskEnd end;
  end.kind = kind;
  end.detail = std::move(detail);
  return end;
}

std::string SignalName(int signal) {
  const char* abbreviation = sigabbrev_np(signal);
  std::string text = "signal " + std::to_string(signal);
  if (abbreviation != nullptr) text += " (SIG" + std::string(abbreviation) + ")";
  return text;
}

}  // namespace

std::string_view NameOf(JobState state) { return NameOfValue(kJobStates, state); }
std::string_view NameOf(TaskState state) { return NameOfValue(kTaskStates, state); }
std::optional<JobState> ParseJobState(std::string_view name) {
  return ValueOfName(kJobStates, name);
}
std::optional<TaskState> ParseTaskState(std::string_view name) {
  return ValueOfName(kTaskStates, name);
}

bool IsFinal(JobState state) {
  return state == JobState::kSucceeded || state == JobState::kFailed ||
         state == JobState::kCancelled;
}

// Transitions of the state diagram in state.h; ends and suspension are allowed from several states.
bool MayFollow(JobState from, JobState to) {
  using S = JobState;
  if (IsFinal(from) || from == to) return false;
  if (to == S::kFailed || to == S::kCancelled) return true;
  if (to == S::kSuspended) return from != S::kFinishing;
  switch (from) {
    case S::kPending:
      return to == S::kAdmitted;
    case S::kAdmitted:
      return to == S::kStarting || to == S::kPending;
    case S::kStarting:
      return to == S::kRunning || to == S::kPending || to == S::kFinishing;
    case S::kRunning:
      return to == S::kFinishing;
    case S::kSuspended:
      return to == S::kPending;
    case S::kFinishing:
      return to == S::kSucceeded;
    default:
      return false;
  }
}

bool MayFollow(TaskState from, TaskState to) {
  using S = TaskState;
  if (from == to) return false;
  if (to == S::kEnded) return true;
  switch (from) {
    case S::kCreated:
      return to == S::kJoined;
    case S::kJoined:
      return to == S::kRunning;
    case S::kRunning:
      return to == S::kDraining;
    case S::kDraining:
      return false;
    case S::kEnded:
      return to == S::kCreated || to == S::kJoined;
  }
  return false;
}

TaskEnd Exited(int code) {
  TaskEnd end;
  end.exit_code = code;
  return end;
}

TaskEnd Signaled(int signal) {
  TaskEnd end;
  end.kind = EndKind::kSignal;
  end.signal = signal;
  return end;
}

TaskEnd OutOfMemory(std::string detail) { return Make(EndKind::kOutOfMemory, std::move(detail)); }
TaskEnd Lost(std::string detail) { return Make(EndKind::kLost, std::move(detail)); }
TaskEnd CancelledEnd(std::string detail) { return Make(EndKind::kCancelled, std::move(detail)); }

std::string Describe(const TaskEnd& end) {
  if (end.process >= 0 && !end.ok()) {
    TaskEnd single = end;
    single.process = -1;
    return Describe(single) + " in its process " + std::to_string(end.process);
  }
  switch (end.kind) {
    case EndKind::kExit:
      if (end.exit_code == 0) return "ended well";
      if (end.exit_code > 128 && sigabbrev_np(end.exit_code - 128) != nullptr) {
        return "exited with " + std::to_string(end.exit_code) + ", which a shell reports for " +
               SignalName(end.exit_code - 128);
      }
      if (end.exit_code == 126 || end.exit_code == 127) {
        return "exited with " + std::to_string(end.exit_code) +
               ", which a shell reports for a program that " +
               (end.exit_code == 127 ? "does not exist" : "cannot be started");
      }
      return "exited with " + std::to_string(end.exit_code);
    case EndKind::kSignal:
      return "was killed by " + SignalName(end.signal) +
             (end.detail.empty() ? "" : ": " + end.detail);
    case EndKind::kOutOfMemory:
      return end.detail.empty() ? "exceeded its memory limit" : end.detail;
    case EndKind::kLost:
      return end.detail.empty() ? "was lost" : "was lost: " + end.detail;
    case EndKind::kCancelled:
      return end.detail.empty() ? "was stopped" : "was stopped: " + end.detail;
  }
  return "ended";
}

json::object ToJson(const TaskEnd& end) {
  json::object object;
  object["kind"] = NameOfValue(kEndKinds, end.kind);
  object["exit_code"] = end.exit_code;
  object["signal"] = end.signal;
  object["detail"] = end.detail;
  if (end.process >= 0) object["process"] = end.process;
  return object;
}

Result<TaskEnd> TaskEndFromJson(const json::object& object) {
  TaskEnd end;
  TRY_ASSIGN(const std::string kind, GetString(object, "kind"));
  const auto known = ValueOfName(kEndKinds, kind);
  if (!known) {
    return InvalidArgument("field 'kind': got '" + kind.substr(0, 40) +
                           "', expected exit, signal, out of memory, lost or cancelled");
  }
  end.kind = *known;
  TRY_ASSIGN(const int64_t code, GetInt(object, "exit_code"));
  TRY_ASSIGN(const int64_t signal, GetInt(object, "signal"));
  if (code < 0 || code > 255) return InvalidArgument("field 'exit_code': expected 0 to 255");
  if (signal < 0 || signal > 64) return InvalidArgument("field 'signal': expected 0 to 64");
  end.exit_code = static_cast<int>(code);
  end.signal = static_cast<int>(signal);
  TRY_ASSIGN(end.detail, GetString(object, "detail"));
  const int64_t process = GetIntOr(object, "process", -1);
  if (process < -1 || process > 100'000) return InvalidArgument("field 'process' is too large");
  end.process = static_cast<int>(process);
  return end;
}

}  // namespace shoal::job
