#include "controller/controller.h"

#include "base/id.h"
#include "controller/job_run.h"
#include "controller/ship.h"
#include "job/json.h"

namespace shoal::controller {

Result<std::string> Controller::Submit(const job::Job& job) {
  NewJob submitted;
  submitted.id = NewJobId(job.name);
  submitted.name = job.name;
  submitted.engine = options_.engine->name();
  submitted.job = job::ToJson(job);
  submitted.owner = options_.self;
  submitted.time = options_.clock->Wall();
  if (!job.files.empty())
    TRY(ShipFiles(job.files, options_.home, options_.home.job_dir(submitted.id)));
  TRY(options_.store->Submit(submitted));
  return submitted.id;
}

namespace {

// Appends to the job only if it is suspended; whoever comes later, or at the same time, is told so.
Status AppendIfSuspended(Store* store, const std::string& id, const std::vector<Event>& events) {
  bool suspended = false;
  const auto decide = [&](const std::vector<JobRecord>& unfinished) -> std::vector<Event> {
    for (const JobRecord& job : unfinished) {
      suspended = suspended || (job.id == id && job.state == JobState::kSuspended);
    }
    return suspended ? events : std::vector<Event>();
  };
  TRY(store->AppendDecided(id, decide, Durability::kSynced));
  if (suspended) return Status::Ok();
  TRY_ASSIGN(const JobRecord job, store->GetJob(id));
  return FailedPrecondition("job " + id + " is not suspended, but " +
                            std::string(job::NameOf(job.state)));
}

}  // namespace

Status Controller::Resume(const std::string& id) {
  TRY_ASSIGN(const JobRecord job, options_.store->GetJob(id));
  // Counted before it counts: who is killed in between has resumed nothing.
  if (job.state == JobState::kSuspended) TRY(CountResume(options_.home.job_dir(id)));
  const WallTime now = options_.clock->Wall();
  return AppendIfSuspended(options_.store, id,
                           {StateEvent(now, JobState::kPending, "resumed"),
                            Event{0, now, "owner", ToJson(options_.self)}});
}

Status Controller::EndSuspended(const std::string& id, const std::string& reason) {
  const WallTime now = options_.clock->Wall();
  TRY(AppendIfSuspended(options_.store, id, {EndedEvent(now, JobState::kCancelled, reason, {})}));
  RemoveScratch(options_.home.job_dir(id), JobState::kCancelled);
  return Status::Ok();
}

Result<std::unique_ptr<JobRun>> Controller::Start(net::Loop* loop, const std::string& id,
                                                  Observer observer) {
  TRY_ASSIGN(const JobRecord record, options_.store->GetJob(id));
  TRY_ASSIGN(job::Job job, job::FromJson(record.job));
  return StartJobRun(options_, loop, id, std::move(job), std::move(observer));
}

}  // namespace shoal::controller
