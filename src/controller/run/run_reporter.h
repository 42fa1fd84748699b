// Tells the observer of a run what happens, and records it. Used by job_run.cc.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "controller/run/controller.h"
#include "controller/run/event_batcher.h"
#include "controller/series/series_files.h"
#include "controller/series/series_recorder.h"

namespace shoal::controller {

// Must be used on the loop's thread. `events` must outlive it.
class RunReporter {
 public:
  RunReporter(Observer observer, EventBatcher* events, net::Loop* loop,
              const std::filesystem::path& job_dir, const ControllerOptions& options)
      : observer_(std::move(observer)),
        events_(events),
        lead_(options.lead),
        series_({SeriesDir(job_dir), loop, options.clock, options.executors.store}) {}

  const Observer& observer() const { return observer_; }
  // Tells the observer alone.
  void Note(const std::string& text) const {
    if (observer_.on_note) observer_.on_note(text);
  }
  void TellState(JobState state, const std::string& why) const {
    if (observer_.on_state) observer_.on_state(state, why);
  }
  // An event of the coordinator; its numbers are kept for curves, unless another server may be
  // writing the files.
  void TellEvent(const rendezvous::JobEvent& event) {
    if (lead_.held()) series_.AddEvent(event);
    if (observer_.on_event) observer_.on_event(event);
  }
  // No more events come.
  void FinishSeries() { series_.Finish(); }
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
  const Lead lead_;
  SeriesRecorder series_;
};

}  // namespace shoal::controller
