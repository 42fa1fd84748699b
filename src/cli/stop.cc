// `shoal stop JOB`: lets a job save and end, or kills it, whoever started it.

#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>

#include "cli/commands.h"
#include "cli/job_json.h"
#include "cli/report.h"
#include "cli/session.h"
#include "controller/process_identity.h"
#include "net/loop.h"
#include "rendezvous/client.h"

namespace shoal::cli {
namespace {

using controller::JobRecord;

struct Arguments {
  std::string job;
  bool now = false;
};

constexpr Duration kDialFor = std::chrono::seconds(5);
constexpr const char* kReason = "stopped by `shoal stop`";

// One stop of one job; everything belongs to the thread that calls Go.
class Stopping {
 public:
  Stopping(Session* session, std::string id, bool now)
      : session_(session), id_(std::move(id)), now_(now) {}

  // Returns when the job has ended.
  Result<JobRecord> Go() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
      loop_.WatchSignal(signal, [this] { Finish(Cancelled("the job is still stopping")); });
    TRY_ASSIGN(watch_, session_->store().Watch([this] { loop_.Post([this] { Look(); }); }));
    Ask();
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
    if (job::IsFinal(job->state)) Finish(Status::Ok());
  }
  void Ask() {
    rendezvous::ClientOptions options;
    options.job_dir = session_->home().job_dir(id_).string();
    options.logs = false;
    options.controller = false;
    options.give_up_after = kDialFor;
    rendezvous::ClientCallbacks callbacks;
    callbacks.on_event = [this](const rendezvous::JobEvent& event) {
      if (event.type == rendezvous::JobEvent::Type::kVerdict) OnCoordinatorGone();
    };
    callbacks.on_closed = [this](const Status& status) {
      // Refused, not gone: waiting would change nothing.
      if (status.code() == Code::kUnauthenticated) return Finish(status.With("stopping " + id_));
      OnCoordinatorGone();
    };
    client_ = rendezvous::Client::Connect(&loop_, std::move(options), std::move(callbacks));
    if (now_) {
      client_->Kill(kReason);
    } else {
      client_->Drain(kReason);
    }
  }
  // If its controller lives, that one stores the end; if not, we do.
  void OnCoordinatorGone() {
    const Result<JobRecord> job = session_->store().GetJob(id_);
    if (!job.ok()) return Finish(job.status());
    if (controller::IsAlive(job->owner)) return;
    if (const Status repaired = session_->Reconcile(); !repaired.ok()) return Finish(repaired);
    Look();
  }

  Session* const session_;
  const std::string id_;
  const bool now_;
  net::Loop loop_;
  std::unique_ptr<controller::Store::Watcher> watch_;
  std::unique_ptr<rendezvous::Client> client_;
  Status status_;
};

Result<JobRecord> StopJob(Session* session, const JobRecord& job, bool now) {
  const bool waits = job.state == job::JobState::kPending;
  if (waits && controller::IsAlive(job.owner)) {
    // It has no coordinator yet: its controller takes the signal as the user's wish to stop.
    if (kill(static_cast<pid_t>(job.owner.pid), SIGTERM) != 0)
      return ErrnoStatus(errno, "stopping the process that holds " + job.id);
  }
  return Stopping(session, job.id, now).Go();
}

int Stop(const Context& context, const Arguments& arguments) {
  const Result<std::unique_ptr<Session>> session = Session::Open(context);
  if (!session.ok()) return Complain(session.status());
  Result<JobRecord> job = (*session)->store().FindJob(arguments.job);
  if (!job.ok()) return Complain(job.status());
  const bool over = job::IsFinal(job->state);
  if (!over) {
    job = StopJob(session->get(), *job, arguments.now);
    if (!job.ok()) return Complain(job.status());
  }
  if (context.json) {
    (void)PrintOut(ToText(JobToJson(*job, false)) + "\n");
  } else {
    (void)PrintOut(job->id + (over ? " has ended already: " : " ") +
                   std::string(job::NameOf(job->state)) +
                   (job->reason.empty() ? "" : ": " + job->reason) + "\n");
  }
  return 0;
}

constexpr const char* kFooter = R"help(Examples:
  shoal stop word2vec-7f3a9c    the workers save what they have, then everything ends
  shoal stop word --now         everything is killed at once

Returns when the job has ended and nothing of it is left. A job that has ended already is no error.)help";

}  // namespace

void AddStop(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* sub = app.add_subcommand("stop", "Stop a job");
  sub->add_option("JOB", arguments->job, "The job, or the beginning of its name")->required();
  sub->add_flag("--now", arguments->now, "Do not let the tasks save first");
  sub->footer(kFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return Stop(context, *arguments); };
  });
}

}  // namespace shoal::cli
