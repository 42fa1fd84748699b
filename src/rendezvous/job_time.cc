#include "rendezvous/job_time.h"

#include <utility>

#include "base/log.h"
#include "rendezvous/protocol.h"

namespace shoal::rendezvous {

JobTime::JobTime(Duration beat, std::function<void(const std::string&)> note,
                 std::function<void()> again)
    : note_(std::move(note)), again_(std::move(again)), time_(RealClock::Get(), 3 * beat) {}

JobTime::Millis JobTime::Now() {
  return base_ + std::chrono::duration_cast<Millis>(time_.Now() - opened_at_);
}

void JobTime::Look() {
  (void)time_.Now();
  const Duration lost = time_.TakeLost();
  if (lost == Duration::zero()) return;
  LogWarning("this coordinator did not run for {}", FormatDuration(lost));
  note_("the coordinator did not run for " + FormatDuration(lost) +
        "; all deadlines are put off by as much");
}

Status JobTime::Held(const void* by, const json::object& message) {
  TRY_ASSIGN(const bool held, GetBool(message, "held"));
  const std::string why = CleanText(GetStringOr(message, "reason", ""), 500);
  if (!held) {
    Release(nullptr, why);
    return Status::Ok();
  }
  if (end_is_wanted_) return Status::Ok();
  if (!time_.held()) note_("the job's processes are stopped: " + why + "; its deadlines wait");
  held_by_ = by;
  time_.Hold(true);
  return Status::Ok();
}

void JobTime::Release(const void* by, const std::string& why) {
  if (!time_.held() || (by != nullptr && by != held_by_)) return;
  held_by_ = nullptr;
  time_.Hold(false);
  note_("the job's deadlines run again: " + why);
  again_();
}

void JobTime::EndIsWanted() {
  end_is_wanted_ = true;
  Release(nullptr, "somebody wants the job to end");
}

}  // namespace shoal::rendezvous
