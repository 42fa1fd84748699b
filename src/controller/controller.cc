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

Result<std::unique_ptr<JobRun>> Controller::Start(net::Loop* loop, const std::string& id,
                                                  Observer observer) {
  TRY_ASSIGN(const JobRecord record, options_.store->GetJob(id));
  TRY_ASSIGN(job::Job job, job::FromJson(record.job));
  return StartJobRun(options_, loop, id, std::move(job), std::move(observer));
}

}  // namespace shoal::controller
