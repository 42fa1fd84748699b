// `shoal jobs`: lists and prunes jobs.

#include <CLI/CLI.hpp>
#include <climits>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/groups.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"
#include "controller/jobs/job_json.h"
#include "job/text/units.h"

namespace shoal::cli {
namespace {

struct JobsArguments {
  bool all = false;
  bool ids = false;
  bool groups = false;
  std::string prune;  // an age
};

constexpr int kEndedShown = 20;
constexpr const char* kUnreadable = "unreadable";

using controller::JobView;

Result<std::vector<JobView>> Find(controller::Jobs& jobs, const JobsArguments& arguments) {
  if (arguments.all || arguments.ids) return jobs.List({.limit = INT_MAX});
  TRY_ASSIGN(std::vector<JobView> found, jobs.List({.ended = false, .limit = INT_MAX}));
  TRY_ASSIGN(std::vector<JobView> ended, jobs.List({.unfinished = false, .limit = kEndedShown}));
  for (JobView& job : ended) found.push_back(std::move(job));
  return found;
}

int PrintTable(const std::vector<JobView>& jobs) {
  if (jobs.empty()) {
    PrintNote("there are no jobs yet; `shoal run FILE` starts one");
    return 0;
  }
  const WallTime now = RealClock::Get()->Wall();
  std::vector<std::vector<std::string>> rows = {{"JOB", "STATE", "SUBMITTED", "RAN", "REASON"}};
  for (const JobView& view : jobs) {
    const controller::JobRecord& job = view.record;
    const bool say_why = job.state != job::JobState::kSucceeded;
    const std::string why = say_why ? job.reason : "";
    const std::string joint = why.empty() || job.damage.empty() ? "" : "; ";
    rows.push_back({job.id, StateText(job, view.unattended), Ago(job.submitted, now),
                    RunTime(job, now, view.suspended), why + joint + job.damage});
  }
  return PrintResult(Table(rows));
}

// Prunes by age or by damage and prints the ids of the removed jobs.
int PruneJobs(const Context& context, controller::Jobs& jobs, const std::string& text) {
  const auto age = job::ParseDurationMs(text);
  if (!age && text != kUnreadable) {
    return PrintError(InvalidArgument("got --prune " + text +
                                      ", expected an age such as 7d, 12h or 0, or " + kUnreadable));
  }
  const auto gone = age ? jobs.Prune(std::chrono::milliseconds(*age)) : jobs.PruneUnreadable();
  if (!gone.ok()) return PrintError(gone.status());
  std::string out;
  for (const std::string& id : *gone) {
    out += context.json ? ToText(json::object{{"removed", id}}) : id + " removed";
    out += "\n";
  }
  if (gone->empty() && !context.json)
    PrintNote(age ? "no job ended that long ago" : "all ended jobs can be read");
  return PrintResult(out);
}

int ListJobs(const Context& context, const JobsArguments& arguments) {
  const auto opened = OpenJobs(context);
  if (!opened.ok()) return PrintError(opened.status());
  if (!arguments.prune.empty()) return PruneJobs(context, **opened, arguments.prune);
  if (arguments.groups) {
    const auto groups = (*opened)->FindGroups("");
    if (!groups.ok()) return PrintError(groups.status());
    if (!context.json) return PrintResult(GroupTable(*groups));
    std::string out;
    for (const json::object& group : *groups) out += ToText(group) + "\n";
    return PrintResult(out);
  }
  const Result<std::vector<JobView>> jobs = Find(**opened, arguments);
  if (!jobs.ok()) return PrintError(jobs.status());
  if (arguments.ids || context.json) {
    std::string out;
    for (const JobView& job : *jobs) {
      out +=
          arguments.ids ? job.record.id : ToText(controller::JobToJson(job.record, job.unattended));
      out += "\n";
    }
    return PrintResult(out);
  }
  return PrintTable(*jobs);
}

constexpr const char* kJobsFooter = R"help(Examples:
  shoal jobs
  shoal jobs --all --json | jq -r 'select(.state == "failed") | .id'
  shoal jobs --groups               matrices and sweeps of a server (docs/triggers.md)
  shoal jobs --prune 30d            remove records, logs and directories of jobs that ended 30 days ago
  shoal jobs --prune unreadable     remove ended jobs with damaged records

Lists all active jobs and the last 20 ended ones, newest first; with --json one object per line. A
job marked "(unattended)" runs on after the command that started it was lost. A job with 'limits:
keep_records' is pruned automatically.)help";

}  // namespace

void AddJobs(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<JobsArguments>();
  CLI::App* sub = app.add_subcommand("jobs", "List jobs, newest first");
  sub->add_flag("-a,--all", arguments->all, "All recorded jobs, not only active and recent ones");
  sub->add_option(
         "--prune", arguments->prune,
         "Remove jobs that ended at least AGE ago, with their logs; unreadable: remove ended "
         "jobs with damaged records")
      ->type_name("AGE");
  sub->add_flag("--groups", arguments->groups, "The groups of a server, not jobs");
  sub->add_flag("--ids", arguments->ids, "Names alone, for completion")->group("");
  sub->footer(kJobsFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return ListJobs(context, *arguments); };
  });
}

}  // namespace shoal::cli
