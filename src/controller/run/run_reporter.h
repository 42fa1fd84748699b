// Tells the observer of a run what happens, and records it. Used by job_run.cc.
#pragma once

#include <string>
#include <utility>

#include "controller/run/controller.h"
#include "controller/run/event_batcher.h"

namespace shoal::controller {

// Must be used on the loop's thread. `events` must outlive it.
class RunReporter {
 public:
  RunReporter(Observer observer, EventBatcher* events)
      : observer_(std::move(observer)), events_(events) {}

  const Observer& observer() const { return observer_; }
  // Tells the observer alone.
  void Note(const std::string& text) const {
    if (observer_.on_note) observer_.on_note(text);
  }
  void TellState(JobState state, const std::string& why) const {
    if (observer_.on_state) observer_.on_state(state, why);
  }
  // Also records it.
  void Record(const std::string& text) {
    Note(text);
    events_->AddNote(text);
  }
  void RecordState(JobState state) {
    TellState(state, "");
    events_->AddState(state, "");
  }

 private:
  const Observer observer_;
  EventBatcher* const events_;
};

}  // namespace shoal::controller
