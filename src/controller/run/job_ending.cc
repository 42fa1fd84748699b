#include "controller/run/job_ending.h"

#include <utility>

#include "base/log.h"
#include "controller/recovery/leftovers.h"
#include "controller/threads/blocking_call.h"

namespace shoal::controller {

void JobEnding::Begin(JobState state, const std::string& why) {
  if (options_->executors.store != nullptr) return StoreFirst(state, why);
  events_->End(state, why);
  callbacks_.acknowledge();
  CleanUp(state, [this] { events_->FlushRest(callbacks_.on_done); });
}

// The coordinator waits and nothing is removed until the end is stored: another server may lead by
// now, whose job it is. Before that it is noted that there is something to remove, for the next
// supervisor, since this process may be killed in between.
void JobEnding::StoreFirst(JobState state, const std::string& why) {
  const Leftover left{id_, options_->EngineName(), "the server ended before it removed them", {}};
  CallBlocking(
      options_->executors.store, tasks_->poster(),
      [home = options_->home, left] { return RecordLeftover(home, left); },
      [this, state, why](const Status& noted) {
        if (!noted.ok()) LogWarning("job {}: {}", id_, noted.message());
        events_->End(state, why);
        events_->FlushRest([this, state](const Status& stored) { OnStored(state, stored); });
      });
}

void JobEnding::OnStored(JobState state, const Status& stored) {
  if (stored.code() == Code::kAborted) {
    LogWarning("job {}: left to another server: {}", id_, stored.message());
    return callbacks_.on_superseded();
  }
  callbacks_.acknowledge();
  CleanUp(state, [this, stored] { callbacks_.on_done(stored); });
}

void JobEnding::CleanUp(JobState state, std::function<void()> done) {
  calls_->CleanUp(state, [this, done = std::move(done)](const Status& stopped) {
    if (!stopped.ok()) callbacks_.on_remains(stopped);
    done();
  });
}

}  // namespace shoal::controller
