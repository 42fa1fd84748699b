// Runs many jobs on one loop thread, on several engines. `shoal server` (src/api) owns one.
//
//     TRY_ASSIGN(auto supervisor, Supervisor::Start({.store = …, .home = …, .engines = …}));
//     auto watch = supervisor->Observe({.on_state = …, .on_log = …});
//     TRY_ASSIGN(auto attached, supervisor->AttachAll());
//     TRY_ASSIGN(std::string id, supervisor->Submit(job, {.engine = "east"}));
//     supervisor->Drain(id, "stopped by ada", [](const Status& accepted) { … });
//
// Jobs outlive the supervisor and its process: their coordinators go on without a controller, and
// the next supervisor of the same state directory attaches them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "controller/admission/queue_manager.h"
#include "controller/admission/why_waits.h"
#include "controller/engines/engine_registry.h"
#include "controller/files/job_user.h"
#include "controller/files/log_store.h"
#include "controller/files/state_home.h"
#include "controller/run/controller.h"
#include "controller/store/job_record.h"
#include "controller/store/lease.h"
#include "controller/store/store.h"
#include "job/spec/job.h"
#include "queue/policy/policy.h"

namespace shoal::controller {

// All pointers must outlive the supervisor.
struct SupervisorOptions {
  Store* store = nullptr;
  StateHome home{std::filesystem::path()};
  EngineRegistry* engines = nullptr;
  const Clock* clock = RealClock::Get();
  std::string program;   // absolute path of shoal, used to start coordinators and launchers
  ProcessIdentity self;  // CurrentProcess()
  // Pause before a job waits again whose tasks did not join within limits.gather; it doubles with
  // each failure in a row, and varies by a quarter. The sixth failure is the job's.
  Duration requeue_delay = std::chrono::seconds(10);
  // The queues of jobs (docs/queue.md). None: one queue, first in, first out on each engine.
  std::optional<queue::Policy> queues = {};
  SecretSource* secrets = nullptr;  // null: jobs with secrets are refused
  TaskUserSource task_user = {};    // asked at each submission, whichever way it came
  // Of several servers that share the store, this one leads, and the store has its fence
  // (Leader). Jobs of earlier epochs are taken over even if their server's process lives, since it
  // may be frozen.
  Lead lead = {};
  ConnectCoordinatorClient connect = &rendezvous::CoordinatorClient::Connect;
};

struct SubmitOptions {
  std::string engine = kLocalEngine;  // name of an instance in the registry
  std::string team = {};
  std::string user = {};
  JobLabels labels = {};
  std::string id = {};  // of the job; empty: a new one. AlreadyExists if a job has it
  // Where programs of jobs without `files` start; empty: the job's directory.
  std::filesystem::path work_dir = {};
  JobValidation validation = {};  // checks that this room cannot make (validate_job.h)
};

// Callbacks about all jobs of a supervisor, called on its thread in the order in which things
// happen; they must not block. All are optional.
struct JobsObserver {
  // Every state except the final ones, once, with the reason.
  std::function<void(const std::string& id, JobState state, const std::string& why)> on_state;
  // Every event of the job's coordinator, progress included.
  std::function<void(const std::string& id, const rendezvous::JobEvent& event)> on_event;
  // Whole lines of a task, as written to the job's log files. What the coordinator has not sent
  // when the job ends is in the files only.
  std::function<void(const std::string& id, const LogKey& key, int64_t offset,
                     std::string_view bytes)>
      on_log;
  // A sentence about the run ("the coordinator died; it is being started again").
  std::function<void(const std::string& id, const std::string& text)> on_note;
  // The job has ended or is suspended; its end is stored and its resources are removed.
  std::function<void(const std::string& id, const JobRecord& record)> on_end;
};

// Thread-safe.
class Supervisor {
 public:
  // Result of a command; called once on the supervisor's thread, must not block.
  using Done = std::function<void(const Status&)>;

  // Starts the loop thread. No job is attached yet.
  static Result<std::unique_ptr<Supervisor>> Start(SupervisorOptions options);
  // Ends the thread. Jobs go on without a controller.
  virtual ~Supervisor() = default;

  // Takes over every unfinished job whose controller is dead; returns their ids. Jobs that were
  // pending, admitted or starting go on, running ones are followed from the last stored event.
  // Jobs whose processes run on another machine, where this one cannot manage them, are left, and
  // tried again every 5 s. To be called once, before any command. Blocks on the store.
  virtual Result<std::vector<std::string>> AttachAll() = 0;
  // Takes over one such job. FailedPrecondition if its controller lives, or it has ended.
  virtual Status Attach(const std::string& id) = 0;

  // Stores the job in a synced commit and starts it; returns its id. Blocks on the disk, and on the
  // engine's daemon for a job whose image names its command: not for a thread that serves others.
  // Errors are those of Controller::Submit; InvalidArgument lists the engines.
  virtual Result<std::string> Submit(const job::Job& job, const SubmitOptions& options) = 0;

  // Commands. `done` gets OK when the command is accepted, before it has taken effect; NotFound;
  // FailedPrecondition with the reason why the job's state does not allow it.
  //
  // Lets the tasks save and end; a job that waits or is suspended ends at once.
  virtual void Drain(const std::string& id, const std::string& reason, Done done) = 0;
  virtual void Kill(const std::string& id, const std::string& reason, Done done) = 0;
  virtual void Suspend(const std::string& id, const std::string& reason, Done done) = 0;
  virtual void Resume(const std::string& id, Done done) = 0;
  // `done` follows the coordinator's answer; Unavailable if there is none within 10 s.
  virtual void Scale(const std::string& id, const std::string& role, int replicas,
                     const std::string& reason, Done done) = 0;

  // Why a job waits for its admission, and what would start it now. `done` is called once, on a
  // thread of the supervisor.
  virtual void Why(const std::string& id, std::function<void(const WhyWaits&)> done) = 0;

  // The queues of its jobs.
  virtual QueueManager& queues() = 0;

  // Calls until the result is destroyed, which waits for a running call on another thread. The
  // result must not outlive the supervisor.
  class Observation {
   public:
    virtual ~Observation() = default;
  };
  virtual std::unique_ptr<Observation> Observe(JobsObserver observer) = 0;

  // A group of jobs has ended, which jobs with `after` wait for.
  virtual void OnGroupEnd(const std::string& id) = 0;

  // Ids of the jobs that it runs, in no order.
  virtual std::vector<std::string> running() const = 0;
};

}  // namespace shoal::controller
