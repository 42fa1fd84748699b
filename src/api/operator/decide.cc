#include "api/operator/decide.h"

#include <algorithm>
#include <utility>

namespace shoal::api {
namespace {

constexpr const char* kPending = "Pending";
constexpr const char* kRefused = "Refused";
constexpr const char* kSuspended = "Suspended";
constexpr const char* kFailed = "Failed";
constexpr const char* kStopping = "Stopping";
constexpr size_t kMaxReason = 1024;  // of a sentence in the status

std::string TimeText(WallTime time) {
  return FormatWall(std::chrono::time_point_cast<std::chrono::seconds>(time));
}

// Cut between characters.
std::string Shortened(const std::string& text) {
  if (text.size() <= kMaxReason) return text;
  size_t end = kMaxReason;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + " …";
}

bool IsFinalPhase(const std::string& phase) {
  return phase == PhaseOf(job::JobState::kSucceeded) || phase == kFailed ||
         phase == PhaseOf(job::JobState::kCancelled);
}

struct Condition {
  const char* type;
  bool holds;
  std::string reason;  // a word
  std::string message = {};
};

// The status that is to be written, built from the present one.
class StatusDraft {
 public:
  explicit StatusDraft(const DecisionInput& input) : input_(input), status_(input.object.status) {}

  template <typename Value>
  void Set(const char* field, Value&& value) {
    status_[field] = std::forward<Value>(value);
  }
  void SetPhase(const std::string& phase, const std::string& reason) {
    status_["phase"] = phase;
    status_["reason"] = Shortened(reason);
  }
  // The time of the last transition stays where the condition does not change.
  void SetCondition(const Condition& condition) {
    const json::value* const before = status_.if_contains("conditions");
    json::array conditions;
    if (before != nullptr && before->is_array()) conditions = before->get_array();
    json::object made{{"type", condition.type},
                      {"status", condition.holds ? "True" : "False"},
                      {"reason", condition.reason},
                      {"message", Shortened(condition.message)},
                      {"observedGeneration", input_.object.generation},
                      {"lastTransitionTime", TimeText(input_.now)}};
    for (json::value& one : conditions) {
      if (!one.is_object() || GetStringOr(one.get_object(), "type", "") != condition.type) continue;
      const json::object& old = one.get_object();
      if (old.contains("lastTransitionTime") && old.contains("status") &&
          old.at("status") == made.at("status"))
        made["lastTransitionTime"] = old.at("lastTransitionTime");
      one = std::move(made);
      status_["conditions"] = std::move(conditions);
      return;
    }
    conditions.emplace_back(std::move(made));
    status_["conditions"] = std::move(conditions);
  }
  void Observe() { Set("observedGeneration", input_.object.generation); }
  json::object Take() { return std::move(status_); }

 private:
  const DecisionInput& input_;
  json::object status_;
};

json::object CountsJson(const TaskCounts& tasks) {
  return {{"total", tasks.total},
          {"running", tasks.running},
          {"succeeded", tasks.succeeded},
          {"failed", tasks.failed}};
}

std::string ReadyText(const TaskCounts& tasks) {
  return std::to_string(tasks.running) + "/" + std::to_string(tasks.total);
}

// What the job is, without what its spec asks for.
void AddJob(const DecisionInput& input, StatusDraft* draft) {
  const OperatedJob& job = *input.job;
  const bool final = job::IsFinal(job.state);
  draft->SetPhase(input.object.deleting && !final ? kStopping : PhaseOf(job.state), job.reason);
  draft->Set("server", input.server);
  draft->Set("job", job.id);
  draft->Set("kind", job.group ? "Group" : "Job");
  draft->Set("tasks", CountsJson(job.tasks));
  draft->Set("workers", ReadyText(job.workers));
  draft->Set("submitted", TimeText(job.submitted));
  if (job.started != WallTime()) draft->Set("started", TimeText(job.started));
  if (job.ended != WallTime()) draft->Set("ended", TimeText(job.ended));
  draft->SetCondition({"Accepted", true, "Submitted", "submitted as job " + job.id});
  const bool runs = job.state == job::JobState::kRunning;
  draft->SetCondition({"Running", runs, PhaseOf(job.state), job.reason});
  if (!final) return;
  const bool good = job.state == job::JobState::kSucceeded;
  draft->SetCondition({"Complete", good, PhaseOf(job.state), job.reason});
  draft->SetCondition({"Failed", !good, PhaseOf(job.state), job.reason});
}

// The replicas that the job was asked to have last: those of the last change, else as submitted.
int AskedReplicas(const DecisionInput& input, const std::string& role, int wanted) {
  if (const json::object* const asked = FindObject(input.object.status, "replicas"))
    if (const int64_t number = GetIntOr(*asked, role, -1); number >= 0)
      return static_cast<int>(number);
  const auto submitted = input.job->replicas.find(role);
  return submitted == input.job->replicas.end() ? wanted : submitted->second;
}

void NoteReplicas(const DecisionInput& input, StatusDraft* draft) {
  json::object asked;
  for (const auto& [role, number] : ReplicasOf(input.object.job)) asked[role] = number;
  draft->Set("replicas", std::move(asked));
}

// ---- Changes of the spec after the submission ----

Decision Changed(const DecisionInput& input, StatusDraft draft) {
  const ShoalJob& object = input.object;
  Decision decision;
  const auto finish = [&](bool applied, const std::string& reason, const std::string& message) {
    draft.SetCondition({"SpecApplied", applied, reason, message});
    draft.Observe();
    decision.status = draft.Take();
    return decision;
  };
  if (input.change_error) return finish(false, "ChangeRefused", input.change_error->message());
  if (FrozenDigest(object.job) != input.job->digest)
    return finish(false, "Immutable",
                  "of a submitted job only the replicas of its roles and suspend can be changed; "
                  "delete this object and create it again");
  if (job::IsFinal(input.job->state)) return finish(true, "Ended", "");
  for (const auto& [role, replicas] : ReplicasOf(object.job)) {
    if (AskedReplicas(input, role, replicas) == replicas) continue;
    decision.step = Step::kScale;
    decision.role = role;
    decision.replicas = replicas;
    json::object asked;
    if (const json::object* const before = FindObject(object.status, "replicas")) asked = *before;
    asked[role] = replicas;
    draft.Set("replicas", std::move(asked));
    decision.status = draft.Take();
    return decision;
  }
  const bool suspended = input.job->state == job::JobState::kSuspended;
  if (object.suspend != suspended) {
    decision.step = object.suspend ? Step::kSuspend : Step::kResume;
    draft.Observe();
    draft.SetCondition({"SpecApplied", true, object.suspend ? "Suspended" : "Resumed", ""});
    decision.status = draft.Take();
    return decision;
  }
  NoteReplicas(input, &draft);
  return finish(true, "Applied", "");
}

// ---- Before the submission ----

// The record of the job is removed, which expires before the object, or by a person.
Decision Lost(const DecisionInput& input) {
  StatusDraft draft(input);
  if (!IsFinalPhase(input.object.StatusText("phase"))) {
    const std::string reason = "the record of its job was removed from the server";
    draft.SetPhase(kFailed, reason);
    draft.SetCondition({"Failed", true, "RecordRemoved", reason});
  }
  return {input.object.has_finalizer() ? Step::kRemoveFinalizer : Step::kNone, "", 0, draft.Take()};
}

Decision Refused(const DecisionInput& input) {
  StatusDraft draft(input);
  const Status& refusal = *input.refusal;
  const bool final = IsFinalRefusal(refusal);
  draft.SetPhase(final ? kRefused : kPending, refusal.message());
  const char* const reason = refusal.code() == Code::kInvalidArgument    ? "InvalidJob"
                             : refusal.code() == Code::kPermissionDenied ? "NotAllowed"
                             : final                                     ? "Refused"
                                                                         : "NotYet";
  draft.SetCondition({"Accepted", false, reason, refusal.message()});
  draft.Observe();
  return {Step::kNone, "", 0, draft.Take()};
}

Decision NotSubmitted(const DecisionInput& input) {
  const ShoalJob& object = input.object;
  if (!object.StatusText("job").empty()) return Lost(input);
  if (object.deleting)
    return {object.has_finalizer() ? Step::kRemoveFinalizer : Step::kNone, "", 0, object.status};
  if (!object.has_finalizer()) return {Step::kAddFinalizer, "", 0, object.status};
  StatusDraft draft(input);
  draft.Set("server", input.server);
  if (object.suspend) {
    draft.SetPhase(kSuspended, "spec.suspend is true; it is submitted when that is false");
    draft.Observe();
    return {Step::kNone, "", 0, draft.Take()};
  }
  if (input.refusal) return Refused(input);
  if (object.StatusText("server").empty()) {
    draft.SetPhase(kPending, "");
    return {Step::kClaim, "", 0, draft.Take()};
  }
  return {Step::kSubmit, "", 0, object.status};
}

}  // namespace

std::string PhaseOf(job::JobState state) {
  std::string name(job::NameOf(state));
  if (!name.empty() && name.front() >= 'a' && name.front() <= 'z')
    name.front() = static_cast<char>(name.front() - 'a' + 'A');
  return name;
}

bool IsFinalRefusal(const Status& status) {
  switch (status.code()) {
    case Code::kUnavailable:
    case Code::kAborted:
    case Code::kDeadlineExceeded:
    case Code::kResourceExhausted:
    case Code::kCancelled:
      return false;
    default:
      return true;
  }
}

Decision Decide(const DecisionInput& input) {
  const ShoalJob& object = input.object;
  const std::string owner = object.StatusText("server");
  if (input.job == nullptr) {
    // Another server's: that one submits and ends it.
    if (!owner.empty() && owner != input.server) return {Step::kNone, "", 0, object.status};
    return NotSubmitted(input);
  }
  const OperatedJob& job = *input.job;
  StatusDraft draft(input);
  AddJob(input, &draft);
  if (job::IsFinal(job.state) && job.released) {
    const bool last = object.has_finalizer();
    if (object.generation > object.observed_generation() && !object.deleting)
      return Changed(input, std::move(draft));
    return {last ? Step::kRemoveFinalizer : Step::kNone, "", 0, draft.Take()};
  }
  if (object.deleting) {
    const bool asked = input.stop_sent || job::IsFinal(job.state);
    return {asked ? Step::kNone : Step::kStop, "", 0, draft.Take()};
  }
  if (!object.has_finalizer() && !job::IsFinal(job.state))
    return {Step::kAddFinalizer, "", 0, draft.Take()};
  if (object.generation > object.observed_generation()) return Changed(input, std::move(draft));
  return {Step::kNone, "", 0, draft.Take()};
}

}  // namespace shoal::api
