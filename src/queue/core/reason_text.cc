// Sentences for reasons.
#include "queue/core/scheduler.h"

namespace shoal::queue {
namespace {

// A job as the viewer may know it.
std::string NameOf(const SchedulerState& state, JobRef job, const Viewer& viewer) {
  const JobSpec& spec = state.job(job).spec;
  if (!viewer.Sees(spec)) return "a job of team " + spec.team;
  return spec.name.empty() || spec.name == spec.id ? spec.id : spec.name + " (" + spec.id + ")";
}

class Writer {
 public:
  Writer(const SchedulerState& state, JobRef job, const Reason& reason, const Viewer& viewer)
      : state_(state), job_(job), reason_(reason), viewer_(viewer) {}

  std::string Run() const;

 private:
  std::string Needs() const;
  std::string Holder() const;
  std::string On() const;
  std::string Queue(NodeIndex node) const { return "queue " + state_.tree().node(node).spec.name; }
  std::string Place() const;
  std::string Until() const;
  std::string LimitText() const;

  const SchedulerState& state_;
  const JobRef job_;
  const Reason& reason_;
  const Viewer& viewer_;
};

std::string Writer::On() const {
  if (reason_.flavor == kNoIndex || state_.tree().flavor_count() < 2) return "";
  return " on " + state_.tree().flavor_name(reason_.flavor);
}

std::string Writer::Needs() const {
  return "needs " + AmountText(reason_.resource, reason_.needed);
}

std::string Writer::Holder() const {
  if (reason_.other == kNoIndex) return "";
  return "; " + NameOf(state_, reason_.other, viewer_) + " holds " +
         AmountText(reason_.resource, state_.job(reason_.other).Holds(reason_.resource));
}

std::string Writer::Place() const {
  if (reason_.ahead == 0) return "first in line; ";
  return std::to_string(reason_.ahead) + (reason_.ahead == 1 ? " job is" : " jobs are") +
         " before it; ";
}

std::string Writer::Until() const {
  if (reason_.until == kForever || reason_.until <= state_.now()) return "";
  return "; expected to start in " + DistanceText(reason_.until - state_.now());
}

std::string Writer::LimitText() const {
  const Account& account = state_.lanes().account(reason_.ahead);
  const bool known = account.team || viewer_.Sees(state_.job(job_).spec);
  const std::string who = known ? (account.team ? "team " : "user ") + account.holder : "its user";
  if (reason_.resource == kResources)
    return who + " runs " + std::to_string(account.jobs) + " jobs, the limit of " +
           Queue(reason_.node);
  return Needs() + ", and " + who + " may use " + AmountText(reason_.resource, reason_.available) +
         " more by the limit of " + Queue(reason_.node);
}

std::string Writer::Run() const {
  const std::string name = NameOf(state_, job_, viewer_);
  switch (reason_.code) {
    case ReasonCode::kNone:
      return "";
    case ReasonCode::kFits:
      return "it can start now";
    case ReasonCode::kNoFlavor:
      return name + " can never start: no flavor that it allows is in " + Queue(reason_.node);
    case ReasonCode::kExceedsQuota:
      return name + " can never start: it " + Needs() + ", and " + Queue(reason_.node) +
             " can use " + AmountText(reason_.resource, reason_.available) + On() +
             " at most; ask for less or for fewer replicas";
    case ReasonCode::kExceedsCapacity:
      return name + " can never start here: all its tasks together ask for " +
             AmountText(reason_.resource, reason_.needed) + ", and there is " +
             AmountText(reason_.resource, reason_.available) + On() +
             " in all; ask for less or for fewer replicas";
    case ReasonCode::kTaskTooLarge:
      return name + " can never start here: one of its tasks asks for " +
             AmountText(reason_.resource, reason_.needed) + ", and the largest node" + On() +
             " has " + AmountText(reason_.resource, reason_.available);
    case ReasonCode::kExceedsLimit:
      return name + " can never start: it asks for more than " + Queue(reason_.node) +
             " allows one " + (state_.lanes().account(reason_.ahead).team ? "team" : "user");
    case ReasonCode::kHeld:
      return Queue(reason_.node) + " is " +
             (state_.tree().node(reason_.node).spec.mode == QueueMode::kDrain ? "drained"
                                                                              : "on hold");
    case ReasonCode::kMaintenance:
      return "a maintenance window" + On() +
             (reason_.until > state_.now() ? " in " + DistanceText(reason_.until - state_.now())
                                           : "");
    case ReasonCode::kDelayed:
      return "its tasks did not gather; it is tried again in " +
             DistanceText(std::max(Millis(0), reason_.until - state_.now()));
    case ReasonCode::kLimit:
      return LimitText();
    case ReasonCode::kVictims:
      if (reason_.needed == 0)
        return "its resources are set aside; it starts when jobs that are being stopped have "
               "released theirs";
      return "its resources are set aside; " + std::to_string(reason_.needed) +
             (reason_.needed == 1 ? " job is" : " jobs are") + " being saved and stopped for it";
    case ReasonCode::kQuota:
      return Place() + Needs() + " and the quota of " + Queue(reason_.node) + " leaves " +
             AmountText(reason_.resource, reason_.available) + On() + Holder() + Until();
    case ReasonCode::kCapacity:
      return Place() + Needs() + " and " + AmountText(reason_.resource, reason_.available) +
             " is free" + On() + Holder() + Until();
    case ReasonCode::kReserved:
      return Place() + "it would delay " + NameOf(state_, reason_.other, viewer_) +
             ", which is next" + On();
    case ReasonCode::kBehind:
      return "behind " + NameOf(state_, reason_.other, viewer_) + ", which is first in line; " +
             std::to_string(reason_.ahead) +
             (reason_.ahead == 1 ? " job is before it" : " jobs are before it");
  }
  return "";
}

}  // namespace

std::string ReasonText(const SchedulerState& state, JobRef job, const Reason& reason,
                       const Viewer& viewer) {
  return Writer(state, job, reason, viewer).Run();
}

std::string ReasonText(const SchedulerState& state, JobRef job, const Reason& reason) {
  return ReasonText(state, job, reason, {.teams = {state.job(job).spec.team}});
}

}  // namespace shoal::queue
