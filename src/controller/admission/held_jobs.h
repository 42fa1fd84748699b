// The jobs of an admitter that hold resources: their sizes, and those that are to stop for others.
// Used by job_admitter.cc.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "controller/admission/admitter_entry.h"
#include "controller/admission/job_admitter.h"
#include "queue/core/scheduler.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::controller {

using AdmitterEntries = std::map<std::string, std::unique_ptr<AdmitterEntry>>;

// Must be used on the loop's thread. All pointers must outlive it.
class HeldJobs {
 public:
  // `kick`: the scheduler is to decide anew.
  HeldJobs(queue::Scheduler* scheduler, const JobAdmitterOptions* options, AdmitterEntries* entries,
           std::function<void()> kick)
      : scheduler_(scheduler), options_(options), entries_(entries), kick_(std::move(kick)) {}

  // The job is to save, to stop and to wait again.
  void Stop(AdmitterEntry* entry, const std::string& reason);
  // Now and then: asks jobs again that do not stop or grow.
  void CheckStops();
  // The scheduler has decided another size.
  void Resize(AdmitterEntry* entry, int size);
  // The bounds of the job, or the demand of its other roles, have changed.
  void Recount(AdmitterEntry* entry, int size);
  // An event of the job's coordinator; nullptr: of a job that is not known. `managed`: a policy
  // decides its size.
  void OnEvent(AdmitterEntry* entry, const rendezvous::JobEvent& event, bool managed);
  // JobAdmitter::CheckScale of a job under a policy.
  Status CheckScale(const AdmitterEntry* entry, const std::string& role, int size) const;

 private:
  queue::Millis QueueTime() const;
  void AskAgain(AdmitterEntry* entry);
  void Keep(AdmitterEntry* entry);
  void OnResizeAnswered(AdmitterEntry* entry, int size, const Status& answer);
  void FinishShrinking(AdmitterEntry* entry);
  void OnPersonScaled(AdmitterEntry* entry, const std::string& role, int size);

  queue::Scheduler* const scheduler_;
  const JobAdmitterOptions* const options_;
  AdmitterEntries* const entries_;
  const std::function<void()> kick_;
};

}  // namespace shoal::controller
