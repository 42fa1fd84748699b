#include "rendezvous/coordinator/job_clock.h"

#include <utility>

#include "base/log.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {

JobClock::JobClock(Duration beat, std::function<void(const std::string&)> note,
                   std::function<void()> again)
    : note_(std::move(note)), again_(std::move(again)), time_(RealClock::Get(), 3 * beat) {}

JobClock::Millis JobClock::Now() {
  return base_ + std::chrono::duration_cast<Millis>(time_.Now() - opened_at_);
}

void JobClock::ReportLostTime() {
  (void)time_.Now();
  const Duration lost = time_.TakeLostTime();
  if (lost == Duration::zero()) return;
  LogWarning("this coordinator did not run for {}", FormatDuration(lost));
  note_("the coordinator did not run for " + FormatDuration(lost) +
        "; all deadlines are put off by as much");
}

Status JobClock::HandleHold(const void* by, const json::object& message) {
  TRY_ASSIGN(const bool held, GetBool(message, "held"));
  const std::string why = CleanText(GetStringOr(message, "reason", ""), 500);
  if (!held) {
    Release(nullptr, why);
    return Status::Ok();
  }
  if (ignore_pauses_) return Status::Ok();
  if (!time_.held()) note_("the job's processes are stopped: " + why + "; its deadlines wait");
  held_by_ = by;
  time_.Hold(true);
  return Status::Ok();
}

void JobClock::Release(const void* by, const std::string& why) {
  if (!time_.held() || (by != nullptr && by != held_by_)) return;
  held_by_ = nullptr;
  time_.Hold(false);
  note_("the job's deadlines run again: " + why);
  again_();
}

void JobClock::IgnorePauses() {
  ignore_pauses_ = true;
  Release(nullptr, "the job is to end");
}

}  // namespace shoal::rendezvous
