// The job's time at its coordinator: milliseconds since the job's start, without the time in which
// the coordinator did not run or the job's processes were paused (protocol/pausable_clock.h). All
// deadlines of the core are in this time.
//
// A part of coordinator.cc. Belongs to the loop's thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "rendezvous/protocol/pausable_clock.h"

namespace shoal::rendezvous {

class JobClock {
 public:
  using Millis = std::chrono::milliseconds;
  // `beat`: how often ReportLostTime is called. `note` takes sentences for people; `again` is
  // called when a paused clock goes on.
  JobClock(Duration beat, std::function<void(const std::string&)> note,
           std::function<void()> again);

  // The time goes on from `at`, the end of an earlier coordinator's journal.
  void ResumeFrom(Millis at) { base_ = at; }
  Millis Now();
  // Every `beat`: notes lost time.
  void ReportLostTime();

  // A controller's message "held": the engine has paused the job's processes, or resumed them.
  Status HandleHold(const void* by, const json::object& message);
  // Ends a pause that `by` started, or any (null).
  void Release(const void* by, const std::string& why);
  // The job is to end: the clock runs from now on, whatever is paused.
  void IgnorePauses();

 private:
  const std::function<void(const std::string&)> note_;
  const std::function<void()> again_;
  PausableClock time_;
  const TimePoint opened_at_ = RealClock::Get()->Now();
  Millis base_{0};
  const void* held_by_ = nullptr;
  bool ignore_pauses_ = false;
};

}  // namespace shoal::rendezvous
