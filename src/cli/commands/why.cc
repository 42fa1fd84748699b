// `shoal why JOB`: why a job waits, and what would start it now.

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/groups.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"

namespace shoal::cli {
namespace {

Result<std::string> Explain(const Context& context, const std::string& prefix) {
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  TRY_ASSIGN(const auto group, FindGroup(jobs.get(), prefix));
  if (group) return context.json ? JsonLine(*group) : GroupWaits(*group);
  TRY_ASSIGN(const controller::JobView job, jobs->Find(prefix));
  TRY_ASSIGN(const controller::WhyWaits why, jobs->Why(job.record.id));
  const std::string state(job::NameOf(job.record.state));
  if (context.json) {
    json::array changes;
    for (const std::string& change : why.changes) changes.emplace_back(change);
    return JsonLine({{"id", job.record.id},
                     {"state", state},
                     {"reason", why.reason},
                     {"changes", std::move(changes)},
                     {"forecast", why.forecast}});
  }
  if (!why.waits)
    return job.record.id + " does not wait: it is " + StateText(job.record, job.unattended) +
           (why.reason.empty() ? "" : ": " + why.reason) + "\n";
  std::string text = job.record.id + " waits: " + why.reason + "\n";
  if (!why.forecast.empty()) text += "It is " + why.forecast + "\n";
  if (!why.changes.empty()) text += "It would start now:\n";
  for (const std::string& change : why.changes) text += "  " + change + "\n";
  return text;
}

int Why(const Context& context, const std::string& prefix) {
  const Result<std::string> text = Explain(context, prefix);
  return text.ok() ? PrintResult(*text) : PrintError(text.status());
}

constexpr const char* kWhyFooter = R"help(Examples:
  shoal why word2vec-7f3a9c

On a server with queues (docs/queue.md) it also lists changes of the job that would start it now.
Each has been tried in a copy of the scheduler.)help";

}  // namespace

void AddWhy(CLI::App& app, Run* chosen) {
  auto prefix = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("why", "Say why a job waits, and what would start it now");
  sub->add_option("JOB", *prefix, "Name of the job, or an unambiguous prefix")->required();
  sub->footer(kWhyFooter);
  sub->callback([prefix, chosen] {
    *chosen = [prefix](const Context& context) { return Why(context, *prefix); };
  });
}

}  // namespace shoal::cli
