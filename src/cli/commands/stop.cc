// `shoal stop JOB`: lets a job save and end, or kills it.

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/job_json.h"
#include "cli/jobs/session.h"
#include "cli/jobs/stop_request.h"
#include "cli/terminal/report.h"

namespace shoal::cli {
namespace {

using controller::JobRecord;

struct StopArguments {
  std::string job;
  bool now = false;
};

constexpr const char* kReason = "stopped by `shoal stop`";

Result<JobRecord> StopJob(Session* session, JobRecord job, bool now) {
  ContinueOwner(job);
  if (job.state == job::JobState::kPending) {
    const Status waiting = session->controller().EndWaiting(job.id, kReason);
    if (waiting.ok()) return session->store().GetJob(job.id);
    if (waiting.code() != Code::kFailedPrecondition)
      return waiting;  // otherwise it has just started
    TRY_ASSIGN(job, session->store().GetJob(job.id));
    if (job::IsFinal(job.state)) return job;
  }
  if (job.state != job::JobState::kSuspended) {
    TRY_ASSIGN(job, SendStopRequest(session, job.id, now ? StopRequest::kKill : StopRequest::kDrain,
                                    kReason));
  }
  // An earlier command may have asked for it already.
  if (job.state == job::JobState::kSuspended)
    TRY(session->controller().EndSuspended(job.id, kReason));
  return session->store().GetJob(job.id);
}

int Stop(const Context& context, const StopArguments& arguments) {
  const Result<std::unique_ptr<Session>> session = Session::Open(context);
  if (!session.ok()) return PrintError(session.status());
  Result<JobRecord> job = (*session)->store().FindJob(arguments.job);
  if (!job.ok()) return PrintError(job.status());
  const bool over = job::IsFinal(job->state);
  if (!over) {
    job = StopJob(session->get(), *job, arguments.now);
    if (!job.ok()) return PrintError(job.status());
  }
  if (context.json) return PrintResult(ToText(JobToJson(*job, false)) + "\n");
  return PrintResult(job->id + (over ? " has ended already: " : " ") +
                     std::string(job::NameOf(job->state)) +
                     (job->reason.empty() ? "" : ": " + job->reason) + "\n");
}

constexpr const char* kStopFooter = R"help(Examples:
  shoal stop word2vec-7f3a9c    the workers save, then all tasks end
  shoal stop word --now         all tasks are killed at once

Returns when the job has ended and its resources are released. An ended job is not an error.)help";

}  // namespace

void AddStop(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<StopArguments>();
  CLI::App* sub = app.add_subcommand("stop", "Stop a job");
  sub->add_option("JOB", arguments->job, "Name of the job, or an unambiguous prefix")->required();
  sub->add_flag("--now", arguments->now, "Kill the tasks without letting them save");
  sub->footer(kStopFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return Stop(context, *arguments); };
  });
}

}  // namespace shoal::cli
