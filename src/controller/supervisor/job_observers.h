// The observers of a supervisor.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "controller/supervisor/supervisor.h"

namespace shoal::controller {

// Thread-safe. Observers may be added and removed from within a call.
class JobObservers {
 public:
  // Calls of the observer end with the destruction of the result, which waits for a running call on
  // another thread. This object must outlive it.
  std::unique_ptr<Supervisor::Observation> Add(JobsObserver observer);
  // The callbacks for one job's run.
  Observer ObserverOf(const std::string& id);

 private:
  struct Entry {
    JobsObserver observer;
    bool removed = false;  // guarded by mu_
  };
  class Registration;
  using Entries = std::vector<std::shared_ptr<Entry>>;

  void Tell(const std::function<void(const JobsObserver&)>& call);

  std::recursive_mutex mu_;                                                     // held during calls
  std::shared_ptr<const Entries> entries_ = std::make_shared<const Entries>();  // guarded by mu_
};

}  // namespace shoal::controller
