// The job's time at its coordinator: milliseconds since the job's start, in which the coordinator
// ran and nobody had stopped the job's processes (running_time.h). All of the core's deadlines are
// by it.
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
  // called when the time runs again.
  JobClock(Duration beat, std::function<void(const std::string&)> note,
           std::function<void()> again);

  // The time goes on from there: where an earlier coordinator's journal stands.
  void ResumeFrom(Millis at) { base_ = at; }
  Millis Now();
  // Every `beat`. Says so if time was lost.
  void ReportLostTime();

  // A controller's word ("held") that the engine has stopped the job's processes, or has them go
  // on.
  Status HandleHold(const void* by, const json::object& message);
  // Whoever had it held has gone, if that was `by`, or says so (null).
  void Release(const void* by, const std::string& why);
  // Somebody wants the job to end: the deadlines of that run, whatever is stopped now or later.
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
