#include "controller/run/controller.h"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/id.h"
#include "controller/files/job_user.h"
#include "controller/files/stage_files.h"
#include "controller/recovery/leftovers.h"
#include "controller/run/job_run.h"
#include "controller/secrets/job_secrets.h"
#include "controller/store/record_text.h"
#include "host/files/disk_retry.h"
#include "job/spec/elastic.h"
#include "job/spec/json.h"

namespace shoal::controller {

namespace {

// Roles without a command run their image's entry point. It is resolved once, so that all attempts
// of all tasks run the same program.
Result<job::Job> WithEntryPoint(job::Job job, engine::Engine* engine) {
  std::optional<engine::EntryPoint> found;
  for (job::Role& role : job.roles) {
    if (job.image.empty() || !job.CommandOf(role).empty()) continue;
    if (!found) {
      TRY_ASSIGN(found, engine->FindEntryPoint(job.image));
    }
    role.command = found->program;
    const std::vector<std::string>& more = role.args.empty() ? found->arguments : role.args;
    role.command.insert(role.command.end(), more.begin(), more.end());
    role.args.clear();
    if (!role.command.empty()) continue;
    return InvalidArgument("role " + role.name + " has no command, and its image " + job.image +
                           " has neither ENTRYPOINT nor CMD; give the role a command");
  }
  return job;
}

// A single job cannot stand for several, and only a server has jobs wait for others.
Status CheckTriggers(const job::Job& job, bool waits) {
  const char* const how = "; submit the file to a server with `shoal submit`";
  if (!job.triggers.matrix.empty())
    return InvalidArgument(std::string("matrix: several jobs are made by a server only") + how);
  if (!job.triggers.sweep.objective.empty())
    return InvalidArgument(std::string("sweep: several jobs are made by a server only") + how);
  if (!job.triggers.after.empty() && !waits)
    return InvalidArgument(std::string("after: jobs wait for others on a server only") + how +
                           ", or leave the field out");
  return Status::Ok();
}

// A commit whose sync failed may still be in the store, as a queued job without a controller. The
// retry stores it or finds it stored.
Status SubmitWithPatience(Store* store, const NewJob& job) {
  bool again = false;
  const auto submit = [&]() -> Result<bool> {
    const Status stored = store->Submit(job);
    const bool known = std::exchange(again, true) && stored.code() == Code::kAlreadyExists;
    return stored.ok() || known ? Result<bool>(true) : stored;
  };
  return host::RetryOnDiskError(submit, host::DeviceErrorTimeout).status();
}

}  // namespace

ReconcileOptions MakeReconcileOptions(const ControllerOptions& controller) {
  ReconcileOptions options;
  options.store = controller.store;
  options.home = controller.home;
  options.clock = controller.clock;
  options.self = controller.self;
  options.engine = [engine = controller.engine, own = controller.EngineName()](
                       const std::string& name) -> Result<engine::Engine*> {
    if (name == own) return engine;
    return Unavailable("the engine " + name + " is not this job's");
  };
  return options;
}

Result<std::string> Controller::Submit(const job::Job& job, const Submission& submission) {
  TRY_ASSIGN(const std::optional<UserIds> user, UserOf(submission.labels));
  {
    // The sentences about a job must not tell of files that its user cannot read.
    const FileAccessAs rights(user);
    job::Job seen = job;
    if (user) seen.files.clear();  // the server has made that directory for the submission
    TRY(ValidateJob(seen, options_.validation));
  }
  if (const Status fine = CheckTriggers(job, options_.gate != nullptr); !fine.ok())
    return InvalidArgument(WithLocation(job, options_.validation.locations, fine.message()));
  if (const Status found = CheckSecrets(options_.secrets, submission.team, job); !found.ok())
    return Status(found.code(), WithLocation(job, options_.validation.locations, found.message()));
  TRY_ASSIGN(const job::Job whole, WithEntryPoint(job, options_.engine));
  NewJob submitted;
  submitted.id = submission.id.empty() ? NewJobId(job.name) : submission.id;
  submitted.name = job.name;
  submitted.engine = options_.EngineName();
  submitted.job = job::ToJson(whole);
  submitted.owner = options_.self;
  submitted.time = options_.clock->Wall();
  submitted.team = submission.team;
  submitted.user = submission.user;
  submitted.labels = submission.labels;
  TRY(CheckUtf8(submitted.job));
  TRY(PrepareJobDir(options_.home, submitted.id, submitted.labels));
  if (!job.files.empty())
    TRY(StageFiles(job.files, options_.home, options_.home.job_dir(submitted.id)));
  TRY(SubmitWithPatience(options_.store, submitted));
  return submitted.id;
}

namespace {

// Appends `events` of the job only if it is in this state; concurrent and later callers get
// FailedPrecondition.
Status AppendIf(Store* store, const std::string& id, JobState state,
                const std::function<Result<std::vector<Event>>(const JobRecord&)>& events) {
  std::optional<Status> made;
  const auto decide = [&](const std::vector<JobRecord>& unfinished) -> std::vector<Event> {
    for (const JobRecord& job : unfinished) {
      if (job.id != id || job.state != state) continue;
      Result<std::vector<Event>> all = events(job);
      made = all.status();
      return all.ok() ? std::move(*all) : std::vector<Event>();
    }
    return {};
  };
  TRY(store->AppendDecided(id, decide, Durability::kSynced));
  if (made) return *made;
  TRY_ASSIGN(const JobRecord job, store->GetJob(id));
  return FailedPrecondition("job " + id + " is not " + std::string(job::NameOf(state)) + ", but " +
                            std::string(job::NameOf(job.state)));
}

// Ends a job without running processes, if it is in this state.
Status Cancel(const ControllerOptions& options, const std::string& id, JobState state,
              const std::string& reason) {
  const WallTime now = options.clock->Wall();
  std::string engine;
  TRY(AppendIf(options.store, id, state, [&](const JobRecord& job) {
    engine = job.engine;
    return std::vector{EndedEvent(now, JobState::kCancelled, reason, {})};
  }));
  ClearScratch(options.home, {id, engine, "", now}, JobState::kCancelled);
  return Status::Ok();
}

}  // namespace

Status Controller::Resume(const std::string& id) {
  TRY_ASSIGN(const JobRecord job, options_.store->GetJob(id));
  TRY(PrepareJobDir(options_.home, id, job.labels));  // an error leaves it suspended
  // Written before the state change: a process that is killed in between has resumed nothing.
  if (job.state == JobState::kSuspended) TRY(CountResume(options_.home.job_dir(id)));
  const WallTime now = options_.clock->Wall();
  return AppendIf(options_.store, id, JobState::kSuspended, [&](const JobRecord&) {
    return std::vector{StateEvent(now, JobState::kPending, "resumed"),
                       Event{0, now, "owner", ToJson(options_.self)}};
  });
}

Status Controller::EndSuspended(const std::string& id, const std::string& reason) {
  return Cancel(options_, id, JobState::kSuspended, reason);
}

Status Controller::EndWaiting(const std::string& id, const std::string& reason) {
  return Cancel(options_, id, JobState::kPending, reason);
}

Status Controller::SuspendWaiting(const std::string& id, const std::string& reason) {
  return AppendIf(options_.store, id, JobState::kPending, [&](const JobRecord&) {
    return std::vector{StateEvent(options_.clock->Wall(), JobState::kSuspended, reason)};
  });
}

Status Controller::ScaleWaiting(const std::string& id, const std::string& role, int replicas) {
  return AppendIf(options_.store, id, JobState::kPending,
                  [&](const JobRecord& record) -> Result<std::vector<Event>> {
                    TRY_ASSIGN(const job::Job job, job::FromJson(record.job));
                    const job::Role* found = job.FindRole(role);
                    const std::string why = found == nullptr
                                                ? job::ExplainMissingRole(job)
                                                : job::ExplainResizeRefusal(*found, replicas);
                    if (!why.empty()) return FailedPrecondition("not scaled: " + role + ": " + why);
                    return std::vector{ResizedEvent(options_.clock->Wall(), role, replicas)};
                  });
}

Result<std::unique_ptr<JobRun>> Controller::Start(net::Loop* loop, const std::string& id,
                                                  Observer observer) {
  TRY_ASSIGN(StoredRun stored, LoadRun(options_.store, id));
  TRY(PrepareJobDir(options_.home, id, stored.record.labels));
  return StartJobRun(options_, loop, std::move(stored), std::move(observer));
}

}  // namespace shoal::controller
