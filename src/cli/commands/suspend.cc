// `shoal suspend JOB`: lets a job save and end, to be resumed with `shoal resume`.

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"
#include "controller/jobs/job_json.h"

namespace shoal::cli {
namespace {

using controller::JobRecord;
using job::JobState;

constexpr const char* kReason = "suspended by `shoal suspend`";

Status Ended(const JobRecord& job) {
  return FailedPrecondition("job " + job.id + " has ended: " + std::string(NameOf(job.state)) +
                            (job.reason.empty() ? "" : ": " + job.reason));
}

Result<controller::JobView> SuspendJob(const Context& context, const std::string& prefix) {
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  TRY_ASSIGN(const controller::JobView found, jobs->Find(prefix));
  return jobs->Suspend(found.record.id, kReason);
}

int Suspend(const Context& context, const std::string& prefix) {
  const Result<controller::JobView> found = SuspendJob(context, prefix);
  if (!found.ok()) return PrintError(found.status());
  const JobRecord* const job = &found->record;
  if (job->state != JobState::kSuspended) return PrintError(Ended(*job));
  if (context.json) return PrintConfirmation(ToText(controller::JobToJson(*job, false)) + "\n");
  return PrintConfirmation(job->id + " suspended; `shoal resume " + job->id + "` resumes it\n");
}

constexpr const char* kSuspendFooter = R"help(Examples:
  shoal suspend word2vec-7f3a9c    tasks save and end; memory, processors and GPUs are released
  shoal resume word2vec-7f3a9c     the job continues from its last checkpoint

Every task receives its role's 'checkpoint_signal', if set, then SIGTERM, then SIGKILL, with
'limits: stop_grace' between them. Record, logs and checkpoints are kept; the command that ran the
job exits with 130. Returns when no task runs any more. A queued job leaves the queue until it is
resumed. A program recomputes the work that it has not saved.)help";

}  // namespace

void AddSuspend(CLI::App& app, Run* chosen) {
  auto prefix = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("suspend", "Save a job and end its tasks, to resume it later");
  sub->add_option("JOB", *prefix, "Name of the job, or an unambiguous prefix")->required();
  sub->footer(kSuspendFooter);
  sub->callback([prefix, chosen] {
    *chosen = [prefix](const Context& context) { return Suspend(context, *prefix); };
  });
}

}  // namespace shoal::cli
