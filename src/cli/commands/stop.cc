// `shoal stop JOB`: lets a job save and end, or kills it.

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/groups.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"
#include "controller/jobs/job_json.h"

namespace shoal::cli {
namespace {

using controller::JobRecord;

struct StopArguments {
  std::string job;
  bool now = false;
};

constexpr const char* kReason = "stopped by `shoal stop`";

int StopGroup(const Context& context, controller::Jobs* jobs, const json::object& group, bool now) {
  const std::string id = GetStringOr(group, "id", "");
  const auto mode = now ? controller::StopMode::kKill : controller::StopMode::kDrain;
  const auto stopped = jobs->StopGroup(GetStringOr(group, "team", ""), id, mode);
  if (!stopped.ok()) return PrintError(stopped.status());
  if (context.json) return PrintConfirmation(ToText(*stopped) + "\n");
  const std::string state = GetStringOr(*stopped, "state", "");
  const std::string reason = GetStringOr(*stopped, "reason", "");
  return PrintConfirmation(id +
                           (state == "stopping" ? " is being stopped" : " has ended: " + state) +
                           (reason.empty() || state == "stopping" ? "" : ": " + reason) + "\n");
}

int Stop(const Context& context, const StopArguments& arguments) {
  const auto jobs = OpenJobs(context);
  if (!jobs.ok()) return PrintError(jobs.status());
  const auto group = FindGroup(jobs->get(), arguments.job);
  if (!group.ok()) return PrintError(group.status());
  if (*group) return StopGroup(context, jobs->get(), **group, arguments.now);
  Result<controller::JobView> found = (*jobs)->Find(arguments.job);
  if (!found.ok()) return PrintError(found.status());
  const bool over = job::IsFinal(found->record.state);
  if (!over) {
    const auto mode = arguments.now ? controller::StopMode::kKill : controller::StopMode::kDrain;
    found = (*jobs)->Stop(found->record.id, mode, kReason);
    if (!found.ok()) return PrintError(found.status());
  }
  const JobRecord* const job = &found->record;
  if (context.json) return PrintConfirmation(ToText(controller::JobToJson(*job, false)) + "\n");
  return PrintConfirmation(job->id + (over ? " has ended already: " : " ") +
                           std::string(job::NameOf(job->state)) +
                           (job->reason.empty() ? "" : ": " + job->reason) + "\n");
}

constexpr const char* kStopFooter = R"help(Examples:
  shoal stop word2vec-7f3a9c    the workers save, then all tasks end
  shoal stop word --now         all tasks are killed at once

Returns when the job has ended and its resources are released. An ended job is not an error. Of a
group (docs/triggers.md) all members are stopped; the command returns at once.)help";

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
