#include "cli/ask_job.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/stop_signals.h"
#include "controller/clearing.h"
#include "controller/process_identity.h"
#include "engine/coordinator_place.h"
#include "net/loop.h"
#include "rendezvous/client.h"

namespace shoal::cli {
namespace {

using controller::JobRecord;

constexpr Duration kDialFor = std::chrono::seconds(5);
constexpr Duration kLookAtOwner = std::chrono::seconds(1);
// How long a controller may take to remove what is left of a job that has ended.
constexpr Duration kClearFor = std::chrono::seconds(10);
constexpr Duration kLookAtClearing = std::chrono::milliseconds(20);
// An owner that was frozen, and woken, has so many looks of time to act; so has a command that
// records the end of a job whose owner is gone.
constexpr int kFrozenLooks = 5;

// One wish for one job; everything belongs to the thread that calls Go.
class Asking {
 public:
  Asking(Session* session, std::string id, JobWish wish, std::string reason)
      : session_(session), id_(std::move(id)), wish_(wish), reason_(std::move(reason)) {}

  Result<JobRecord> Go() {
    for (const int signal : WithoutIgnored({SIGINT, SIGTERM, SIGHUP}))
      loop_.WatchSignal(
          signal, [this] { Finish(Cancelled("the job has been told, and is still stopping")); });
    TRY_ASSIGN(watch_, session_->store().Watch([this] { loop_.Post([this] { Look(); }); }));
    TRY(Ask());
    loop_.Post([this] { Look(); });
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
  void Look() {
    const Result<JobRecord> job = session_->store().GetJob(id_);
    if (!job.ok()) return Finish(job.status());
    const bool rests = job->state == job::JobState::kSuspended;
    if (rests || job::IsFinal(job->state)) FinishCleared();
  }
  // Once its controller has removed what was left of the job, or has had time for it.
  void FinishCleared() {
    const TimePoint now = RealClock::Get()->Now();
    if (!ended_at_) ended_at_ = now;
    if (now - *ended_at_ >= kClearFor || !controller::IsClearing(session_->home().job_dir(id_)))
      return Finish(Status::Ok());
    loop_.After(kLookAtClearing, [this] { FinishCleared(); });
  }
  Status Ask() {
    TRY_ASSIGN(const JobRecord job, session_->store().GetJob(id_));
    // It may have no coordinator for long: it waits in the engine's queue.
    const bool waits = wish_ != JobWish::kSuspend && job.state <= job::JobState::kStarting &&
                       !std::filesystem::exists(session_->home().job_dir(id_) / "coordinator.json");
    if (waits && session_->IsAlive(job.owner)) {
      told_ = true;
      TRY(TellOwner(job));
    }
    TRY(WakeCoordinator(job));
    TRY_ASSIGN(rendezvous::ClientOptions options, session_->Bystander(job));
    options.give_up_after = kDialFor;
    // The coordinator's own file of it is elsewhere, and nobody else is there to write ours.
    const bool orphan = options.find != nullptr && !session_->IsAlive(job.owner);
    rendezvous::ClientCallbacks callbacks;
    callbacks.on_event = [this, orphan](const rendezvous::JobEvent& event) {
      using Type = rendezvous::JobEvent::Type;
      if (event.type == Type::kVerdict && orphan)
        (void)controller::WriteVerdict(session_->home().job_dir(id_), event.verdict);
      if (event.type == Type::kVerdict) {
        decided_ = true;
        OnCoordinatorGone();
      }
      const bool refused = event.text.starts_with(rendezvous::kNotSuspended);
      if (event.type == Type::kNote && refused) Finish(FailedPrecondition(event.text));
    };
    callbacks.on_closed = [this](const Status& status) {
      // Refused, not gone: waiting would change nothing.
      if (status.code() == Code::kUnauthenticated) return Finish(status.With("job " + id_));
      OnCoordinatorGone();
    };
    client_ = rendezvous::Client::Connect(&loop_, std::move(options), std::move(callbacks));
    if (wish_ == JobWish::kKill) client_->Kill(reason_);
    if (wish_ == JobWish::kDrain) client_->Drain(reason_);
    if (wish_ == JobWish::kSuspend) client_->Suspend(reason_);
    return Status::Ok();
  }
  // If its controller lives, that one stores the end; if not, we do.
  void OnCoordinatorGone() {
    const Result<JobRecord> job = session_->store().GetJob(id_);
    if (!job.ok()) return Finish(job.status());
    if (session_->IsAlive(job->owner)) {
      // A job that was put into the engine's queue again has none for as long as it waits there. Of
      // a verdict its controller has heard as well; a signal would hurry it.
      const bool tell = wish_ != JobWish::kSuspend && !decided_ && !std::exchange(told_, true);
      if (tell && !job::IsFinal(job->state)) (void)TellOwner(*job);
      return WaitForOwner();
    }
    if (const Status repaired = session_->Reconcile(); !repaired.ok()) return Finish(repaired);
    Look();
  }

  // It stores the end, unless it is frozen: then we do.
  void WaitForOwner() {
    if (timer_ != 0) return;
    timer_ = loop_.After(kLookAtOwner, [this] {
      timer_ = 0;
      if (const Status looked = LookAtOwner(); !looked.ok()) return Finish(looked);
      Look();
      WaitForOwner();
    });
  }
  Status LookAtOwner() {
    TRY(session_->HoldMark());
    const std::filesystem::path& root = session_->home().root();
    controller::TouchMark(root, session_->self());
    TRY_ASSIGN(const JobRecord job, session_->store().GetJob(id_));
    if (job::IsFinal(job.state)) return Status::Ok();
    if (!session_->IsAlive(job.owner)) {
      TRY(session_->Reconcile());
      return ++orphan_looks_ < kFrozenLooks ? Status::Ok() : Recordable(job);
    }
    if (!decided_) TRY(LookAtCoordinator(job));
    if (controller::Answers(root, job.owner, session_->self())) return Status::Ok();
    WakeOwner(job);
    if (++frozen_looks_ < kFrozenLooks) return Status::Ok();
    return session_->ReconcileFrozen(id_);
  }

  // Why the end of a job without an owner is not recorded.
  Status Recordable(const JobRecord& job) {
    orphan_looks_ = 0;
    if (session_->unattended(id_)) return Status::Ok();  // its coordinator lives
    const std::vector<controller::Event> note{controller::NoteEvent(
        RealClock::Get()->Wall(), "a command waits for the end of the job to be recorded")};
    const Status stored = session_->store().Append(id_, note, controller::Durability::kSynced);
    if (stored.ok()) return Status::Ok();
    return stored.With("job " + job.id +
                       " has lost its controller, and its end cannot be recorded");
  }

  // It has said nothing since it was told, or is away: it may be stopped (SIGSTOP, a debugger). One
  // that does not go on is killed by the job's controller, which a second signal tells to.
  Status LookAtCoordinator(const JobRecord& job) {
    TRY(WakeCoordinator(job));
    if (wish_ != JobWish::kKill || ++silent_looks_ != kFrozenLooks) return Status::Ok();
    return TellOwner(job);
  }

  // Lets it go on if somebody has stopped it, where its process can be reached.
  Status WakeCoordinator(const JobRecord& job) {
    TRY_ASSIGN(engine::Engine* const engine, session_->engine(job.engine));
    if (!engine->UsesPids() || !controller::SharesPids(job.owner)) return Status::Ok();
    const auto place = engine::ReadCoordinatorPlace(id_, session_->home().job_dir(id_).string());
    if (place.ok() && place->pid > 1) (void)::kill(static_cast<pid_t>(place->pid), SIGCONT);
    return Status::Ok();
  }

  Session* const session_;
  const std::string id_;
  const JobWish wish_;
  const std::string reason_;
  net::Loop loop_;
  std::unique_ptr<controller::Store::Watcher> watch_;
  std::unique_ptr<rendezvous::Client> client_;
  bool told_ = false;     // the owner
  bool decided_ = false;  // the coordinator has, and told us
  net::Loop::Id timer_ = 0;
  std::optional<TimePoint> ended_at_;
  int frozen_looks_ = 0;  // that found the owner frozen, after it was woken
  int silent_looks_ = 0;  // without a coordinator that answers
  int orphan_looks_ = 0;  // that found no owner, and no end
  Status status_;
};

}  // namespace

void WakeOwner(const JobRecord& job) {
  if (job.owner.pid > 0 && controller::SharesPids(job.owner))
    (void)::kill(static_cast<pid_t>(job.owner.pid), SIGCONT);
}

Status TellOwner(const JobRecord& job) {
  if (!controller::SharesPids(job.owner)) {
    return FailedPrecondition(
        "job " + job.id + " has no coordinator yet, and the command that runs it is process " +
        std::to_string(job.owner.pid) +
        " of another PID namespace or machine; stop it there, or try again when the job runs");
  }
  if (::kill(static_cast<pid_t>(job.owner.pid), SIGTERM) != 0)
    return ErrnoStatus(errno, "stopping the process that holds " + job.id);
  WakeOwner(job);
  return Status::Ok();
}

Result<JobRecord> AskJob(Session* session, const std::string& id, JobWish wish,
                         const std::string& reason) {
  return Asking(session, id, wish, reason).Go();
}

}  // namespace shoal::cli
