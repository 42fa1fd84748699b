// Sentences for reasons.
#include <cstdio>

#include "queue/core/scheduler.h"

namespace shoal::queue {
namespace {

std::string NameOf(const SchedulerState& state, JobRef job) {
  const JobSpec& spec = state.job(job).spec;
  return spec.name.empty() || spec.name == spec.id ? spec.id : spec.name + " (" + spec.id + ")";
}

// Another job as the owner of `job` may know it: jobs of other teams are not named.
std::string OtherName(const SchedulerState& state, JobRef job, JobRef other) {
  const std::string& team = state.job(other).spec.team;
  return team == state.job(job).spec.team ? NameOf(state, other) : "a job of team " + team;
}

// "90 s", "12 min", "5 h", "3 days".
std::string DistanceText(Millis distance) {
  const auto seconds = static_cast<double>(distance.count()) / 1000;
  char buffer[32];
  if (seconds < 120) {
    std::snprintf(buffer, sizeof buffer, "%.0f s", seconds);
  } else if (seconds < 7200) {
    std::snprintf(buffer, sizeof buffer, "%.0f min", seconds / 60);
  } else if (seconds < 172800) {
    std::snprintf(buffer, sizeof buffer, "%.0f h", seconds / 3600);
  } else {
    std::snprintf(buffer, sizeof buffer, "%.0f days", seconds / 86400);
  }
  return buffer;
}

class Writer {
 public:
  Writer(const SchedulerState& state, JobRef job, const Reason& reason)
      : state_(state), job_(job), reason_(reason) {}

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
  return "; " + OtherName(state_, job_, reason_.other) + " holds " +
         AmountText(reason_.resource, state_.job(reason_.other).charge[reason_.resource]);
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
  const std::string who = (account.team ? "team " : "user ") + account.holder;
  if (reason_.resource == kResources)
    return who + " runs " + std::to_string(account.jobs) + " jobs, the limit of " +
           Queue(reason_.node);
  return Needs() + ", and " + who + " may use " + AmountText(reason_.resource, reason_.available) +
         " more by the limit of " + Queue(reason_.node);
}

std::string Writer::Run() const {
  const std::string name = NameOf(state_, job_);
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
      return "its resources are set aside; " + std::to_string(reason_.needed) +
             (reason_.needed == 1 ? " job is" : " jobs are") + " being saved and stopped for it";
    case ReasonCode::kQuota:
      return Place() + Needs() + " and the quota of " + Queue(reason_.node) + " leaves " +
             AmountText(reason_.resource, reason_.available) + On() + Holder() + Until();
    case ReasonCode::kCapacity:
      return Place() + Needs() + " and " + AmountText(reason_.resource, reason_.available) +
             " is free" + On() + Holder() + Until();
    case ReasonCode::kReserved:
      return Place() + "it would delay " + OtherName(state_, job_, reason_.other) +
             ", which is next" + On();
    case ReasonCode::kBehind:
      return "behind " + OtherName(state_, job_, reason_.other) + ", which is first in line; " +
             std::to_string(reason_.ahead) +
             (reason_.ahead == 1 ? " job is before it" : " jobs are before it");
  }
  return "";
}

}  // namespace

std::string ReasonText(const SchedulerState& state, JobRef job, const Reason& reason) {
  return Writer(state, job, reason).Run();
}

}  // namespace shoal::queue
