#include "controller/supervisor/takeover_place.h"

#include <string>

#include "controller/store/process_identity.h"
#include "engine/tasks/job_files.h"
#include "job/execution/job_dir.h"
#include "rendezvous/journal/journal.h"

namespace shoal::controller {

Status CheckPlace(const StateHome& home, const JobRecord& job, engine::Engine* engine) {
  const job::JobDir dir(home.job_dir(job.id));
  if (!engine->UsesPids() || SharesPids(job.owner) || !rendezvous::JournalIsLocked(dir.journal()))
    return Status::Ok();
  return FailedPrecondition(
      "its processes run on another machine or in another PID namespace, where the engine " +
      job.engine + " cannot manage them; they go on, and it is tried again every 5 s");
}

Status BreakLocks(const StateHome& home, const JobRecord& job, const ProcessIdentity& self) {
  if (job.owner == self) return Status::Ok();
  if (IsAlive(home.root(), job.owner)) return engine::BreakJobLock(home.job_dir(job.id).string());
  RemoveLivenessLock(home.root(), job.owner);
  return Status::Ok();
}

}  // namespace shoal::controller
