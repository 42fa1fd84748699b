#include "controller/jobs/stop_request.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "controller/files/cleanup_lock.h"
#include "controller/store/process_identity.h"
#include "controller/store/supervisor_mark.h"
#include "engine/tasks/coordinator_location.h"
#include "job/execution/job_dir.h"
#include "net/event_loop.h"
#include "rendezvous/client/coordinator_client.h"

namespace shoal::controller {
namespace {

constexpr Duration kConnectTimeout = std::chrono::seconds(5);
constexpr Duration kOwnerCheckInterval = std::chrono::seconds(1);
// Time for a controller to clean up after an ended job.
constexpr Duration kCleanupTimeout = std::chrono::seconds(10);
constexpr Duration kCleanupPollInterval = std::chrono::milliseconds(20);
// Number of checks after which a frozen and continued owner is considered unable to act, and an
// orphaned job's end unrecordable.
constexpr int kMaxFrozenChecks = 5;

// Executes one request for one job. Must be used on the thread that calls RunToEnd.
class StopRequestSender {
 public:
  StopRequestSender(Session* session, std::string id, StopRequest request, std::string reason)
      : session_(session), id_(std::move(id)), request_(request), reason_(std::move(reason)) {}

  Result<JobRecord> RunToEnd(const std::vector<int>& signals) {
    for (const int signal : signals)
      loop_.WatchSignal(signal,
                        [this] { Finish(Cancelled("interrupted; the job is still stopping")); });
    TRY_ASSIGN(watch_,
               session_->store().Watch([this] { loop_.Post([this] { CheckJobState(); }); }));
    TRY(SendRequest());
    loop_.Post([this] { CheckJobState(); });
    loop_.Run();
    client_.reset();
    TRY(status_);
    return session_->store().GetJob(id_);
  }

 private:
  void Finish(Status status) {
    status_ = std::move(status);
    loop_.Stop();
  }
  void CheckJobState() {
    const Result<JobRecord> job = session_->store().GetJob(id_);
    if (!job.ok()) return Finish(job.status());
    const bool rests = job->state == job::JobState::kSuspended;
    if (rests || job::IsFinal(job->state)) FinishAfterCleanup();
  }
  // Finishes when its controller has cleaned up or the time for it has passed.
  void FinishAfterCleanup() {
    const TimePoint now = RealClock::Get()->Now();
    if (!ended_at_) ended_at_ = now;
    if (now - *ended_at_ >= kCleanupTimeout || !IsCleanupRunning(session_->home().job_dir(id_)))
      return Finish(Status::Ok());
    loop_.After(kCleanupPollInterval, [this] { FinishAfterCleanup(); });
  }
  Status SendRequest() {
    TRY_ASSIGN(const JobRecord job, session_->store().GetJob(id_));
    // A job in the engine's queue may have no coordinator for a long time.
    const bool waits =
        request_ != StopRequest::kSuspend && job.state <= job::JobState::kStarting &&
        !std::filesystem::exists(job::JobDir(session_->home().job_dir(id_)).coordinator());
    if (waits && session_->IsAlive(job.owner)) {
      owner_signaled_ = true;
      TRY(SignalOwner(session_->home(), job));
    }
    TRY(ContinueCoordinator(job));
    TRY_ASSIGN(rendezvous::CoordinatorClientOptions options, session_->ObserverClientOptions(job));
    options.give_up_after = kConnectTimeout;
    // The coordinator does not share this directory, and no controller writes the verdict here.
    const bool orphan = options.find != nullptr && !session_->IsAlive(job.owner);
    rendezvous::CoordinatorClientCallbacks callbacks;
    callbacks.on_event = [this, orphan](const rendezvous::JobEvent& event) {
      using Type = rendezvous::JobEvent::Type;
      if (event.type == Type::kVerdict && orphan)
        (void)WriteVerdict(session_->home().job_dir(id_), event.verdict);
      if (event.type == Type::kVerdict) {
        decided_ = true;
        OnCoordinatorGone();
      }
      if (rendezvous::RefusalOf(event) == rendezvous::RequestRefusal::kSuspend)
        Finish(FailedPrecondition(event.text));
    };
    callbacks.on_closed = [this](const Status& status) {
      // The coordinator refused the token: waiting is useless.
      if (status.code() == Code::kUnauthenticated) return Finish(status.With("job " + id_));
      OnCoordinatorGone();
    };
    client_ =
        rendezvous::CoordinatorClient::Connect(&loop_, std::move(options), std::move(callbacks));
    if (request_ == StopRequest::kKill) client_->Kill(reason_);
    if (request_ == StopRequest::kDrain) client_->Drain(reason_);
    if (request_ == StopRequest::kSuspend) client_->Suspend(reason_);
    return Status::Ok();
  }
  // A living controller stores the end; otherwise this process does.
  void OnCoordinatorGone() {
    const Result<JobRecord> job = session_->store().GetJob(id_);
    if (!job.ok()) return Finish(job.status());
    if (session_->IsAlive(job->owner)) {
      // A requeued job has no coordinator while it waits. If there is a verdict, its controller
      // knows it as well, and a signal would only kill the job faster.
      const bool tell =
          request_ != StopRequest::kSuspend && !decided_ && !std::exchange(owner_signaled_, true);
      if (tell && !job::IsFinal(job->state)) (void)SignalOwner(session_->home(), *job);
      return WaitForOwner();
    }
    if (const Status repaired = session_->Reconcile(id_); !repaired.ok()) return Finish(repaired);
    CheckJobState();
  }

  // Waits for the controller to store the end; recovers the job if the controller is frozen.
  void WaitForOwner() {
    if (timer_ != 0) return;
    timer_ = loop_.After(kOwnerCheckInterval, [this] {
      timer_ = 0;
      if (const Status looked = CheckOwner(); !looked.ok()) return Finish(looked);
      CheckJobState();
      WaitForOwner();
    });
  }
  Status CheckOwner() {
    TRY(session_->HoldLivenessLock());
    const std::filesystem::path& root = session_->home().root();
    RefreshLivenessLock(root, session_->self());
    TRY_ASSIGN(const JobRecord job, session_->store().GetJob(id_));
    if (job::IsFinal(job.state)) return Status::Ok();
    if (!session_->IsAlive(job.owner)) {
      TRY(session_->Reconcile(id_));
      return ++orphan_checks_ < kMaxFrozenChecks ? Status::Ok() : CheckRecordable(job);
    }
    if (!decided_) TRY(CheckCoordinator(job));
    if (IsResponsive(root, job.owner, session_->self())) return Status::Ok();
    ContinueOwner(job);
    if (++frozen_checks_ < kMaxFrozenChecks) return Status::Ok();
    return session_->ReconcileFrozen(id_);
  }

  // The error that keeps the end of an orphaned job from being recorded.
  Status CheckRecordable(const JobRecord& job) {
    orphan_checks_ = 0;
    if (session_->unattended(id_)) return Status::Ok();  // its coordinator lives
    const std::vector<Event> note{NoteEvent(
        RealClock::Get()->Wall(), "a command waits for the end of the job to be recorded")};
    const Status stored = session_->store().Append(id_, note, Durability::kSynced);
    if (stored.ok()) return Status::Ok();
    return stored.With("job " + job.id +
                       " has lost its controller, and its end cannot be recorded");
  }

  // The coordinator does not answer: it may be stopped (SIGSTOP, a debugger). If it does not
  // continue, a second signal makes the job's controller kill it.
  Status CheckCoordinator(const JobRecord& job) {
    TRY(ContinueCoordinator(job));
    if (request_ != StopRequest::kKill || ++silent_checks_ != kMaxFrozenChecks) return Status::Ok();
    return SignalOwner(session_->home(), job);
  }

  // Continues a stopped coordinator with SIGCONT, if its process can be signalled from here.
  Status ContinueCoordinator(const JobRecord& job) {
    TRY_ASSIGN(engine::Engine* const engine, session_->engine(job.engine));
    if (SharesPids(job.owner))
      engine::ContinueCoordinator(*engine, id_, session_->home().job_dir(id_).string());
    return Status::Ok();
  }

  Session* const session_;
  const std::string id_;
  const StopRequest request_;
  const std::string reason_;
  net::Loop loop_;
  std::unique_ptr<Store::Watcher> watch_;
  std::unique_ptr<rendezvous::CoordinatorClient> client_;
  bool owner_signaled_ = false;  // the owner has been signalled
  bool decided_ = false;         // the coordinator has sent a verdict
  net::Loop::Id timer_ = 0;
  std::optional<TimePoint> ended_at_;
  int frozen_checks_ = 0;  // checks that found the owner frozen after it was continued
  int silent_checks_ = 0;  // checks without an answer of the coordinator
  int orphan_checks_ = 0;  // checks that found neither an owner nor an end
  Status status_;
};

}  // namespace

void ContinueOwner(const JobRecord& job) {
  if (job.owner.pid > 0 && SharesPids(job.owner))
    (void)::kill(static_cast<pid_t>(job.owner.pid), SIGCONT);
}

Status SignalOwner(const StateHome& home, const JobRecord& job) {
  if (IsSupervisor(home.root(), job.owner)) {
    return FailedPrecondition("job " + job.id +
                              " has no coordinator yet, and a server runs it; stop it with "
                              "--server, or try again when the job runs");
  }
  if (!SharesPids(job.owner)) {
    return FailedPrecondition(
        "job " + job.id + " has no coordinator yet, and the command that runs it is process " +
        std::to_string(job.owner.pid) +
        " of another PID namespace or machine; stop it there, or try again when the job runs");
  }
  if (::kill(static_cast<pid_t>(job.owner.pid), SIGTERM) != 0)
    return ErrnoStatus(errno, "stopping the process that holds " + job.id);
  ContinueOwner(job);
  return Status::Ok();
}

Result<JobRecord> SendStopRequest(Session* session, const std::string& id, StopRequest request,
                                  const std::string& reason, const std::vector<int>& signals) {
  return StopRequestSender(session, id, request, reason).RunToEnd(signals);
}

}  // namespace shoal::controller
