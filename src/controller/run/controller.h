// The controller owns a job from its submission to its end: queue → engine → coordinator → verdict
// → cleanup.
//
//     Controller controller({.store = store.get(), .engine = …, .home = home, .program =
//     "/…/shoal"}); TRY_ASSIGN(std::string id, controller.Submit(job)); net::Loop loop; auto run =
//     controller.Start(&loop, id, {.on_event = …, .on_end = [&](…) { loop.Stop(); }}); loop.Run();
//
// `shoal run` embeds it; a server can run many jobs on one controller. README.md describes the flow
// of a job.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "controller/files/state_home.h"
#include "controller/recovery/reconcile.h"
#include "controller/run/validate_job.h"
#include "controller/secrets/secrets.h"
#include "controller/store/job_record.h"
#include "controller/store/lease.h"
#include "controller/store/store.h"
#include "controller/threads/executor.h"
#include "engine/engine.h"
#include "job/spec/job.h"
#include "net/event_loop.h"
#include "rendezvous/client/coordinator_client.h"

namespace shoal::controller {

class DependencyGate;
class JobAdmitter;

// Opens a client connection to a coordinator: rendezvous::Client::Connect, or a fake in tests.
using ConnectCoordinatorClient = std::function<std::unique_ptr<rendezvous::CoordinatorClient>(
    net::Loop*, rendezvous::CoordinatorClientOptions, rendezvous::CoordinatorClientCallbacks)>;

// Settings of a controller. All pointers must outlive the controller and its runs.
struct ControllerOptions {
  Store* store = nullptr;
  engine::Engine* engine = nullptr;
  std::string engine_instance = {};  // the engine's name in records; empty: Engine::name
  const Clock* clock = RealClock::Get();
  StateHome home{std::filesystem::path()};
  std::string program;  // absolute path of shoal, used to start coordinators and launchers
  std::filesystem::path work_dir;  // working directory of the programs of jobs without `files`
  ProcessIdentity self;            // recorded as the owner of submitted jobs
  // Checks of submitted jobs (validate_job.h).
  JobValidation validation = {};
  ConnectCoordinatorClient connect = &rendezvous::CoordinatorClient::Connect;
  // The job fails after this many ends of its coordinator without a connection in between.
  int coordinator_attempts = 3;
  // A job that waits in the queue recovers jobs of dead controllers, which may hold the resources
  // it waits for.
  bool recovers_others = true;
  RunExecutors executors = {};  // of a supervisor
  // Of a supervisor: admits its jobs. Null: each waiting job asks the queue over the store.
  JobAdmitter* admitter = nullptr;
  // Of a supervisor: holds back jobs with `after`. Null: such jobs are refused.
  DependencyGate* gate = nullptr;
  // Of a supervisor: asked when the tasks of job `id` did not join within limits.gather. True: the
  // job is suspended, and the supervisor lets it wait again; false: it has failed.
  std::function<bool(const std::string& id)> not_gathered = {};
  SecretSource* secrets = nullptr;  // null: jobs with secrets are refused
  Lead lead = {};                   // of several servers

  std::string EngineName() const {
    return engine_instance.empty() ? engine->name() : engine_instance;
  }
};

// The origin of a job that a server submits, for its record; empty without one. Plain value.
struct Submission {
  std::string team = {};
  std::string user = {};
  JobLabels labels = {};
  std::string id = {};  // of the job; empty: a new one. AlreadyExists if a job has it
};

// Options for Reconcile that recover only jobs of the controller's own engine.
ReconcileOptions MakeReconcileOptions(const ControllerOptions& controller);

// Callbacks of a run, called on the loop's thread. All are optional.
struct Observer {
  // Called for every state except the final ones: pending (with the reason for waiting), admitted,
  // starting, running, finishing.
  std::function<void(JobState, const std::string& why)> on_state;
  // Called for every event of the coordinator.
  std::function<void(const rendezvous::JobEvent&)> on_event;
  std::function<void(const rendezvous::LogKey&, int64_t offset, std::string_view bytes)> on_log;
  // Whether on_log is called at the end for what the coordinator has not sent. That takes as long
  // as reading it, and a task's user may have put any file into the directory of the logs.
  bool rest_of_logs = true;
  // A sentence about the run itself ("the coordinator died; it is being started again").
  std::function<void(const std::string&)> on_note;
  // Called when the controller itself fails the job, before or without its coordinator.
  // kUnavailable: the engine cannot be reached; kInvalidArgument: it cannot run this job, or its
  // configuration is missing or wrong.
  std::function<void(Code)> on_failed;
  // Called once, last, after the end is stored and the job's resources on the engine are removed.
  std::function<void(const JobRecord&)> on_end;
};

// A running job. Must be used on the loop's thread only. Destroying it does not stop the job: the
// job continues without a controller until on_controller_loss takes effect.
class JobRun {
 public:
  virtual ~JobRun() = default;
  // Asks the tasks to save and end. The job ends as `cancelled` unless the tasks then succeed. A
  // job that has not started ends at once.
  virtual void Drain(const std::string& reason) = 0;
  // Kills all tasks. The job ends as `cancelled`.
  virtual void Kill(const std::string& reason) = 0;
  // Lets the tasks save and end, to be resumed later. A job that has not started leaves the queue
  // at once. A refusal of the coordinator is reported as a note.
  virtual void Suspend(const std::string& reason) = 0;
  // Sets the number of tasks of an elastic role. `done` is called once: with OK when it is accepted
  // (before or after the return), FailedPrecondition with the reason why it is not, Unavailable
  // without an answer of the coordinator within 10 s. Not called after the run's destruction.
  virtual void Scale(const std::string& role, int replicas, const std::string& reason,
                     std::function<void(const Status&)> done) = 0;
};

// Submits jobs and starts their runs. Thread-safe. Copies its options; holds no other state.
class Controller {
 public:
  explicit Controller(ControllerOptions options) : options_(std::move(options)) {}

  // Stages the job's `files` (stage_files.h), stores the job in one synced commit and returns its
  // id. InvalidArgument names a field that is not UTF-8; other errors are those of ValidateJob.
  Result<std::string> Submit(const job::Job& job, const Submission& submission = {});

  // Queues a suspended job again, owned by this process; Start then runs it. Its programs start in
  // their original directory if ControllerOptions::work_dir is set to it (ReadWorkDir).
  // FailedPrecondition if the job is not suspended.
  Status Resume(const std::string& id);
  // Ends a suspended job. FailedPrecondition if it is not suspended.
  Status EndSuspended(const std::string& id, const std::string& reason);

  // Ends a queued job. Its own process learns of it from the store, even if it is frozen now or
  // runs in another PID namespace. FailedPrecondition if the job is not queued.
  Status EndWaiting(const std::string& id, const std::string& reason);
  // Suspends a queued job until it is resumed; the command that waits for it ends.
  // FailedPrecondition if the job is not queued.
  Status SuspendWaiting(const std::string& id, const std::string& reason);
  // Sets the number of tasks with which an elastic role of a queued job starts, and re-evaluates
  // its admission. FailedPrecondition if the job is not queued, or with the reason why the role
  // cannot have that number.
  Status ScaleWaiting(const std::string& id, const std::string& role, int replicas);

  // Runs a job of this process to its end on `loop`; returns at once. A job that an earlier
  // controller has admitted is continued (ClaimOwnership first): its coordinator's events after the
  // last stored one follow, and its processes are started as far as they do not run.
  Result<std::unique_ptr<JobRun>> Start(net::Loop* loop, const std::string& id, Observer observer);

 private:
  ControllerOptions options_;
};

}  // namespace shoal::controller
