#include "controller/supervisor/job_observers.h"

#include <utility>

namespace shoal::controller {

class JobObservers::Registration final : public Supervisor::Observation {
 public:
  Registration(JobObservers* owner, std::shared_ptr<Entry> entry)
      : owner_(owner), entry_(std::move(entry)) {}
  ~Registration() override {
    const std::lock_guard lock(owner_->mu_);
    entry_->removed = true;
    auto kept = std::make_shared<Entries>(*owner_->entries_);
    std::erase(*kept, entry_);
    owner_->entries_ = std::move(kept);
  }

 private:
  JobObservers* const owner_;
  const std::shared_ptr<Entry> entry_;
};

std::unique_ptr<Supervisor::Observation> JobObservers::Add(JobsObserver observer) {
  auto entry = std::make_shared<Entry>();
  entry->observer = std::move(observer);
  const std::lock_guard lock(mu_);
  auto more = std::make_shared<Entries>(*entries_);
  more->push_back(entry);
  entries_ = std::move(more);
  return std::make_unique<Registration>(this, std::move(entry));
}

void JobObservers::Tell(const std::function<void(const JobsObserver&)>& call) {
  const std::lock_guard lock(mu_);
  const std::shared_ptr<const Entries> entries = entries_;  // a call may change entries_
  for (const std::shared_ptr<Entry>& entry : *entries) {
    if (!entry->removed) call(entry->observer);
  }
}

Observer JobObservers::ObserverOf(const std::string& id) {
  Observer run;
  // The loop of all jobs must not wait for a file that a user has made; observers read files.
  run.rest_of_logs = false;
  run.on_state = [this, id](JobState state, const std::string& why) {
    Tell([&](const JobsObserver& to) {
      if (to.on_state) to.on_state(id, state, why);
    });
  };
  run.on_event = [this, id](const rendezvous::JobEvent& event) {
    Tell([&](const JobsObserver& to) {
      if (to.on_event) to.on_event(id, event);
    });
  };
  run.on_log = [this, id](const LogKey& key, int64_t offset, std::string_view bytes) {
    Tell([&](const JobsObserver& to) {
      if (to.on_log) to.on_log(id, key, offset, bytes);
    });
  };
  run.on_note = [this, id](const std::string& text) {
    Tell([&](const JobsObserver& to) {
      if (to.on_note) to.on_note(id, text);
    });
  };
  run.on_end = [this, id](const JobRecord& record) {
    Tell([&](const JobsObserver& to) {
      if (to.on_end) to.on_end(id, record);
    });
  };
  return run;
}

}  // namespace shoal::controller
