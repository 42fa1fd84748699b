#include "controller/desired.h"

#include "engine/local/local_engine.h"
#include "job/plan.h"

namespace shoal::controller {

Result<engine::DesiredJob> MakeDesiredJob(const job::Job& job, const std::string& id,
                                          const DesiredPlaces& places, const Members& members) {
  const std::string dir = places.dir.string();
  // Programs of a job with `files` start in their own copy of these.
  const std::string work_dir =
      !job.files.empty() || places.work_dir.empty() ? dir : places.work_dir.string();
  job::Job scaled = job;
  for (job::Role& role : scaled.roles) {
    const auto found = members.find(role.name);
    if (found == members.end()) continue;
    role.replicas = found->second.empty() ? 0 : *found->second.rbegin() + 1;
  }
  TRY_ASSIGN(const job::Plan plan, job::MakePlan(scaled));
  engine::DesiredJob desired;
  desired.job_id = id;
  desired.job_dir = dir;
  desired.image = job.image;
  desired.slurm = job.slurm;
  for (const job::Role& role : job.roles) {
    if (role.elastic()) desired.most[role.name] = role.most();
  }
  desired.tasks.reserve(plan.tasks.size() + 1);
  engine::DesiredTask coordinator;
  coordinator.role = kCoordinatorRole;
  coordinator.argv = {places.program, "coordinator", "--job-dir", dir};
  coordinator.work_dir = dir;
  desired.tasks.push_back(std::move(coordinator));
  for (const job::PlannedTask& planned : plan.tasks) {
    const auto found = members.find(planned.role);
    if (found != members.end() && !found->second.contains(planned.index)) continue;
    engine::DesiredTask task;
    task.role = planned.role;
    task.index = planned.index;
    task.argv = {places.program,  "task",
                 "--job-dir",     dir,
                 "--role",        planned.role,
                 "--index",       std::to_string(planned.index),
                 "--incarnation", engine::kIncarnationMark};
    task.work_dir = work_dir;
    task.resources = planned.resources;
    desired.tasks.push_back(std::move(task));
  }
  return desired;
}

}  // namespace shoal::controller
