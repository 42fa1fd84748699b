// The controller: owns a job from its submission to its end. queue → engine → coordinator →
// verdict → nothing left behind.
//
//   Controller controller({.store = store.get(), .engine = …, .home = home, .program =
//   "/…/shoal"}); TRY_ASSIGN(std::string id, controller.Submit(job)); net::Loop loop; auto run =
//   controller.Start(&loop, id, {.on_event = …, .on_end = [&](…) { loop.Stop(); }}); loop.Run();
//
// `shoal run` embeds it; a server will run many jobs on one. See README.md for the flow of a job.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "controller/files/state_home.h"
#include "controller/store/job_record.h"
#include "controller/store/store.h"
#include "engine/engine.h"
#include "job/spec/job.h"
#include "net/event_loop.h"
#include "rendezvous/client/coordinator_client.h"

namespace shoal::controller {

// How a coordinator is reached: rendezvous::CoordinatorClient::Connect, or a test's fake of it.
using ConnectCoordinatorClient = std::function<std::unique_ptr<rendezvous::CoordinatorClient>(
    net::Loop*, rendezvous::CoordinatorClientOptions, rendezvous::CoordinatorClientCallbacks)>;

// All pointers outlive the controller and its runs.
struct ControllerOptions {
  Store* store = nullptr;
  engine::Engine* engine = nullptr;
  const Clock* clock = RealClock::Get();
  StateHome home{std::filesystem::path()};
  std::string program;  // absolute path of shoal: coordinators and launchers are started from it
  std::filesystem::path work_dir;  // where programs start, unless the job says `files`
  ProcessIdentity self;            // who owns what this controller submits
  // What is refused besides what the parser refuses, before anything is stored; none: nothing.
  std::function<Status(const job::Job&)> check = {};
  ConnectCoordinatorClient connect = &rendezvous::CoordinatorClient::Connect;
  // A coordinator that has ended this often without a word fails the job.
  int coordinator_attempts = 3;
};

// What happens in a run, told on the loop's thread. All optional.
struct Observer {
  // Every transition, the ends excepted: pending (with why it waits), admitted, starting, running,
  // finishing.
  std::function<void(JobState, const std::string& why)> on_state;
  // Everything the coordinator tells.
  std::function<void(const rendezvous::JobEvent&)> on_event;
  std::function<void(const rendezvous::LogKey&, int64_t offset, std::string_view bytes)> on_log;
  // A sentence about the run itself ("the coordinator died; it is being started again").
  std::function<void(const std::string&)> on_note;
  // The controller itself fails the job, before or instead of its coordinator: kUnavailable if the
  // engine cannot be reached.
  std::function<void(Code)> on_failed;
  // Once, last: the end is stored and nothing of the job is left on the engine.
  std::function<void(const JobRecord&)> on_end;
};

// A job under way. Everything belongs to the loop's thread. Destroying it stops nothing: the job
// goes on without a controller until on_controller_loss takes effect.
class JobRun {
 public:
  virtual ~JobRun() = default;
  // Lets the tasks save and end; the job ends `cancelled` unless they then succeed. A job that has
  // not started ends at once.
  virtual void Drain(const std::string& reason) = 0;
  // Kills everything now; the job ends `cancelled`.
  virtual void Kill(const std::string& reason) = 0;
};

// Thread-safe.
class Controller {
 public:
  explicit Controller(ControllerOptions options) : options_(std::move(options)) {}

  // Ships the job's `files` (ship.h), stores the job (one synced commit) and gives its id. The job
  // was validated; InvalidArgument names a field of it that is not UTF-8, or what
  // ControllerOptions::check refuses.
  Result<std::string> Submit(const job::Job& job);

  // Puts a suspended job into the queue again, as this process's; Start takes it on. Its programs
  // start where they did first if ControllerOptions::work_dir says so (ReadWorkDir).
  // FailedPrecondition if it is not suspended.
  Status Resume(const std::string& id);
  // Ends a suspended job. FailedPrecondition if it is not suspended (any more).
  Status EndSuspended(const std::string& id, const std::string& reason);

  // Ends a job that waits to be started: its own process sees it in the store, also one that is
  // frozen now or runs in another PID namespace. FailedPrecondition if it does not wait (any more).
  Status EndWaiting(const std::string& id, const std::string& reason);
  // A job that waits to be started rests until it is resumed; whoever waits with it ends.
  // FailedPrecondition if it does not wait (any more).
  Status SuspendWaiting(const std::string& id, const std::string& reason);
  // An elastic role of a job that waits begins with so many tasks, and the queue weighs it anew.
  // FailedPrecondition if it does not wait (any more), or says why the role may not have them.
  Status ScaleWaiting(const std::string& id, const std::string& role, int replicas);

  // Takes the submitted job to its end, on `loop`; returns at once.
  Result<std::unique_ptr<JobRun>> Start(net::Loop* loop, const std::string& id, Observer observer);

 private:
  ControllerOptions options_;
};

}  // namespace shoal::controller
